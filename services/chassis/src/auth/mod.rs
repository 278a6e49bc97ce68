//! The bearer check: who calls, for which tenant, with which scopes.
//!
//! Tokens are JWT access tokens (RFC 9068), signed with RS256 by the issuer the service is configured with. The answers
//! follow RFC 6750: the challenge says what was wrong, never why a signature failed in detail.

mod claims;
mod keys;
mod verifier;

use std::time::Duration;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
};

use crate::{config::Address, problem::Problem};

pub use claims::Claims;
pub use verifier::Verifier;

/// A client whose token could not be checked may try again after this; keys are asked for again at least this often.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Where tokens come from and whom they must be meant for.
#[derive(Clone, Debug, clap::Args, serde::Serialize)]
pub struct AuthConfig {
    /// URL of the token issuer; tokens must carry it as `iss`, character for character.
    #[arg(long)]
    pub auth_issuer: Address,
    /// Audience that tokens must name in `aud`.
    #[arg(long, default_value = "rowlock")]
    pub auth_audience: String,
    /// URL of the issuer's keys (JWKS); by default the one its discovery document names.
    #[arg(long)]
    pub auth_jwks_url: Option<Address>,
}

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// No bearer token was sent at all.
    #[error("the request has no bearer token")]
    MissingCredentials,
    /// A token was sent, and it is not good.
    #[error("{0}")]
    InvalidToken(&'static str),
    /// The token may be good, but the keys to check it with are not to be had.
    #[error("the issuer's keys are not available: {0}")]
    KeysUnavailable(String),
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
            AuthError::KeysUnavailable(reason) => {
                tracing::warn!(reason, "a token cannot be checked without the issuer's keys");
                Problem::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "issuer-unavailable",
                    "The token cannot be checked at the moment",
                )
                .detail("The keys of the token issuer are not available; try again shortly.")
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

/// Extractor: the claims of a token that has been checked.
#[derive(Clone, Debug)]
pub struct Bearer(pub Claims);

impl<S> FromRequestParts<S> for Bearer
where
    Verifier: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        check(&Verifier::from_ref(state), &parts.headers).await.map(Self)
    }
}

/// Checks the bearer token among `headers`; the problem is the answer to send.
pub async fn check(verifier: &Verifier, headers: &HeaderMap) -> Result<Claims, Problem> {
    Ok(verifier.verify(bearer(headers)?).await?)
}

/// The token of the one `Authorization: Bearer …` header.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::MissingCredentials)?;
    if values.next().is_some() {
        // Two components that look at different ones would disagree on who is calling.
        return Err(AuthError::InvalidToken("more than one Authorization header"));
    }
    let text = value
        .to_str()
        .map_err(|_| AuthError::InvalidToken("the Authorization header is not ASCII"))?;
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim_matches(' ')),
        _ => Err(AuthError::MissingCredentials),
    }
}

/// Challenges are made of literals of this crate; a character that no header may hold would be a mistake in them.
fn challenge_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(r#"Bearer realm="rowlock""#))
}
