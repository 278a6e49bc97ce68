//! Why a request is not let in, and how its sender is told (RFC 6750).

use std::time::Duration;

use http::{HeaderValue, StatusCode, header};

use super::Claims;
use crate::problem::Problem;

/// A client whose token could not be checked may try again after this; keys are asked for again at least this often.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No bearer token was sent at all.
    #[error("the request has no bearer token")]
    MissingCredentials,
    /// A token was sent, and it is not good.
    #[error("{0}")]
    InvalidToken(&'static str),
    /// The token may be good, but the issuer, who would have to say so, does not answer.
    #[error("the issuer cannot be asked: {0}")]
    IssuerUnavailable(String),
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::MissingCredentials => {
                // RFC 6750, section 3.1: no error code when the request has no authentication information.
                Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "A bearer token is required").header(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static(r#"Bearer realm="rowlock""#),
                )
            }
            AuthError::InvalidToken(reason) => {
                let challenge =
                    format!(r#"Bearer realm="rowlock", error="invalid_token", error_description="{reason}""#);
                Problem::new(
                    StatusCode::UNAUTHORIZED,
                    "invalid-token",
                    "The bearer token is not valid",
                )
                .detail(reason)
                .header(header::WWW_AUTHENTICATE, challenge_value(&challenge))
            }
            AuthError::IssuerUnavailable(reason) => {
                tracing::warn!(reason, "a token cannot be checked without its issuer");
                Problem::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "issuer-unavailable",
                    "The token cannot be checked at the moment",
                )
                .detail("The token issuer is not available; try again shortly.")
                .retry_after(RETRY_AFTER)
            }
        }
    }
}

impl Claims {
    /// Lets the request pass only if the token grants `scope`; otherwise 403 `insufficient_scope`.
    pub fn require_scope(&self, scope: &'static str) -> Result<(), Problem> {
        if self.scopes.iter().any(|granted| granted == scope) {
            return Ok(());
        }
        let challenge = format!(r#"Bearer realm="rowlock", error="insufficient_scope", scope="{scope}""#);
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            "insufficient-scope",
            "The token does not allow this",
        )
        .detail(format!(
            "The request needs the scope {scope:?}, which the token does not grant."
        ))
        .header(header::WWW_AUTHENTICATE, challenge_value(&challenge)))
    }
}

/// Challenges are made of literals of this crate; a character that no header may hold would be a mistake in them.
fn challenge_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(r#"Bearer realm="rowlock""#))
}
