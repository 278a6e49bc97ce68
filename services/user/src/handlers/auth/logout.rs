//! `POST /api/auth/logout {"refreshToken"}`: ends the session, and with it every access token that came from it.

use axum::extract::State;
use axum::http::StatusCode;
use chassis::problem::Problem;

use super::super::fields::Fields;
use crate::issuer::Issuer;
use crate::sessions;

/// 204, also for a token that is unknown or used up: whoever wants to be logged out is.
pub(crate) async fn logout(State(issuer): State<Issuer>, mut fields: Fields) -> Result<StatusCode, Problem> {
    let token = fields.required("refreshToken")?;
    fields.end()?;
    sessions::end(&issuer, &token).await?;
    Ok(StatusCode::NO_CONTENT)
}
