//! Token endpoint errors (RFC 6749, section 5.2).

use axum::Json;
use axum::http::header::{CACHE_CONTROL, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why no token was issued.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// One text for an unknown client and a wrong secret, so that neither tells which ids exist.
    #[error("client authentication failed: unknown client, wrong secret or no credentials")]
    InvalidClient,
    #[error("only the grant type client_credentials is supported")]
    UnsupportedGrantType,
    #[error("{0}")]
    InvalidScope(String),
    #[error("the signing key is not loaded yet; try again shortly")]
    NotReady,
    #[error("clients cannot be looked up right now; try again shortly")]
    Database(#[from] sqlx::Error),
    #[error("the token could not be signed")]
    Signing(String),
}

#[derive(Serialize)]
struct Body {
    error: &'static str,
    error_description: String,
}

impl TokenError {
    fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidRequest(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::InvalidClient => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::UnsupportedGrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::InvalidScope(_) => (StatusCode::BAD_REQUEST, "invalid_scope"),
            Self::NotReady | Self::Database(_) => (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"),
            Self::Signing(_) => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        }
    }
}

impl IntoResponse for TokenError {
    fn into_response(self) -> Response {
        match &self {
            Self::Database(cause) => tracing::error!(%cause, "no token issued: the database failed"),
            Self::Signing(cause) => tracing::error!(%cause, "no token issued: signing failed"),
            _ => {}
        }
        let (status, error) = self.status_and_code();
        let body = Body {
            error,
            error_description: self.to_string(),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static(r#"Basic realm="rowlock", charset="UTF-8""#),
            );
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
