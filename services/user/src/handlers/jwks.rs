//! `GET /oauth2/jwks`: the public keys (RFC 7517).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use chassis::problem::Problem;
use serde::Serialize;

use crate::issuer::Issuer;
use crate::keys::Jwk;

/// As long as a default token lives: a verifier that sees an unknown key id asks again anyway.
const CACHE: &str = "public, max-age=300";

#[derive(Serialize)]
struct JwkSet<'a> {
    keys: [&'a Jwk; 1],
}

pub(crate) async fn show(State(issuer): State<Issuer>) -> Result<Response, Problem> {
    let key = issuer.key().ok_or_else(|| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "signing-key-not-loaded",
            "The signing key is not loaded yet",
        )
        .retry_after(std::time::Duration::from_secs(1))
    })?;
    let set = JwkSet { keys: [key.jwk()] };
    Ok(([(CACHE_CONTROL, CACHE)], Json(set)).into_response())
}
