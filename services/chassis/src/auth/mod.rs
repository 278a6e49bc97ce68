//! The bearer check: who calls, for which tenant, with which scopes.
//!
//! Tokens come from any OpenID Connect issuer the service is configured with. They are checked in one of two ways
//! ([`Check`]): as JWT access tokens (RFC 9068) signed with RS256, or by asking the issuer (RFC 7662). The answers follow
//! RFC 6750: the challenge says what was wrong, never why a signature failed in detail.

mod cache;
mod claims;
mod config;
mod error;
mod introspection;
mod jwt;
mod keys;
mod remote;
mod verifier;

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, header, request::Parts},
};

use crate::problem::Problem;

pub use claims::Claims;
pub use config::{AuthConfig, Check};
pub use error::AuthError;
pub use verifier::Verifier;

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
    Ok(verifier.verify(bearer_token(headers)?).await?)
}

/// The token of the one `Authorization: Bearer …` header, unchecked.
pub fn bearer_token(headers: &HeaderMap) -> Result<&str, AuthError> {
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
