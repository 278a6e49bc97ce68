//! The bearer of an access token that counts.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chassis::auth::{AuthError, bearer_token};
use chassis::problem::Problem;
use uuid::Uuid;

use crate::access_token::AccessToken;
use crate::issuer::Issuer;

/// Extractor. The service asks itself, as introspection would: a session that was ended a moment ago is over.
pub(crate) struct Caller(AccessToken);

impl Caller {
    /// The account; `None` for a client that acts for itself.
    pub(super) fn account(&self) -> Option<Uuid> {
        self.0.sub.parse().ok()
    }

    pub(super) fn tenant(&self) -> Option<&str> {
        self.0.tenant.as_deref()
    }
}

impl FromRequestParts<Issuer> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, issuer: &Issuer) -> Result<Self, Problem> {
        let token = bearer_token(&parts.headers)?;
        let active = issuer.active(token).await?;
        let not_active = AuthError::InvalidToken("the token is not active");
        Ok(Self(active.ok_or(not_active)?))
    }
}
