//! The two discovery documents: authorization server metadata (RFC 8414) and OpenID Connect discovery.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use serde::Serialize;

use crate::issuer::Issuer;

const CACHE: (axum::http::HeaderName, &str) = (CACHE_CONTROL, "public, max-age=3600");

#[derive(Serialize)]
struct Metadata {
    issuer: String,
    token_endpoint: String,
    jwks_uri: String,
    grant_types_supported: [&'static str; 1],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    /// Required by the RFC; empty because there is no authorization endpoint.
    response_types_supported: [&'static str; 0],
}

#[derive(Serialize)]
struct OpenId {
    #[serde(flatten)]
    metadata: Metadata,
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: [&'static str; 1],
}

/// `GET /.well-known/oauth-authorization-server`
pub(crate) async fn oauth(State(issuer): State<Issuer>) -> impl IntoResponse {
    ([CACHE], Json(Metadata::of(&issuer)))
}

/// `GET /.well-known/openid-configuration`
pub(crate) async fn openid(State(issuer): State<Issuer>) -> impl IntoResponse {
    let document = OpenId {
        metadata: Metadata::of(&issuer),
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
    };
    ([CACHE], Json(document))
}

impl Metadata {
    fn of(issuer: &Issuer) -> Self {
        let url = issuer.url();
        Self {
            issuer: url.to_owned(),
            token_endpoint: format!("{url}/oauth2/token"),
            jwks_uri: format!("{url}/oauth2/jwks"),
            grant_types_supported: ["client_credentials"],
            token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
            response_types_supported: [],
        }
    }
}
