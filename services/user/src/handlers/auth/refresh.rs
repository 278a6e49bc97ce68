//! `POST /api/auth/refresh {"refreshToken"}`

use axum::extract::State;
use axum::response::Response;
use chassis::problem::Problem;

use super::super::fields::Fields;
use super::{logged_in, unauthorized};
use crate::issuer::Issuer;
use crate::sessions::{self, OWN_CLIENT, RefreshError};

pub(crate) async fn refresh(State(issuer): State<Issuer>, mut fields: Fields) -> Result<Response, Problem> {
    let token = fields.required("refreshToken")?;
    fields.end()?;
    match sessions::refresh(&issuer, &token, OWN_CLIENT, None, None).await {
        Ok(tokens) => Ok(logged_in(&issuer, tokens)),
        Err(RefreshError::Failure(failure)) => Err(failure.into()),
        // No scope is asked for, so the second does not occur.
        Err(RefreshError::Invalid | RefreshError::Scope(_)) => Err(unauthorized(
            "invalid-refresh-token",
            "The session cannot be prolonged",
            "The refresh token is unknown, used, expired or revoked: log in again.",
        )),
    }
}
