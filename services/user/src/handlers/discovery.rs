//! The two discovery documents: authorization server metadata (RFC 8414) and OpenID Connect discovery.

use axum::Json;
use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use serde::Serialize;

use super::grant;
use crate::issuer::Issuer;

const CACHE: (axum::http::HeaderName, &str) = (CACHE_CONTROL, "public, max-age=3600");

/// How a client proves who it is, at each endpoint that asks.
const AUTH_METHODS: [&str; 2] = ["client_secret_basic", "client_secret_post"];

#[derive(Serialize)]
struct Metadata {
    issuer: String,
    token_endpoint: String,
    jwks_uri: String,
    introspection_endpoint: String,
    revocation_endpoint: String,
    grant_types_supported: [&'static str; 3],
    token_endpoint_auth_methods_supported: [&'static str; 2],
    introspection_endpoint_auth_methods_supported: [&'static str; 2],
    revocation_endpoint_auth_methods_supported: [&'static str; 2],
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
            introspection_endpoint: format!("{url}/oauth2/introspect"),
            revocation_endpoint: format!("{url}/oauth2/revoke"),
            grant_types_supported: grant::ALL,
            token_endpoint_auth_methods_supported: AUTH_METHODS,
            introspection_endpoint_auth_methods_supported: AUTH_METHODS,
            revocation_endpoint_auth_methods_supported: AUTH_METHODS,
            response_types_supported: [],
        }
    }
}
