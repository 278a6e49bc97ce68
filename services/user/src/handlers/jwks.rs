//! `GET /oauth2/jwks`: the public keys (RFC 7517), those that are to sign included.

use std::time::Instant;

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use chassis::problem::Problem;
use serde::Serialize;

use crate::failure::Failure;
use crate::issuer::Issuer;
use crate::keys::Jwk;

#[derive(Serialize)]
struct JwkSet<'a> {
    keys: Vec<&'a Jwk>,
}

pub(crate) async fn show(State(issuer): State<Issuer>) -> Result<Response, Problem> {
    let ring = issuer.ring();
    let keys: Vec<&Jwk> = ring.published(Instant::now()).map(|key| key.jwk()).collect();
    if keys.is_empty() {
        return Err(Failure::NotReady.into());
    }
    let cache = format!("public, max-age={}", issuer.jwks_max_age_s());
    Ok(([(CACHE_CONTROL, cache)], Json(JwkSet { keys })).into_response())
}
