//! Errors of the OAuth endpoints (RFC 6749, section 5.2).

use axum::Json;
use axum::http::header::{CACHE_CONTROL, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::failure::{self, Failure};
use crate::scope::ScopeError;
use crate::sessions::RefreshError;

/// Why a request to an OAuth endpoint was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// One text for an unknown client and a wrong secret, so that neither tells which ids exist.
    #[error("client authentication failed: unknown client, wrong secret or no credentials")]
    InvalidClient,
    #[error("{0}")]
    InvalidGrant(String),
    #[error("{0}")]
    UnauthorizedClient(&'static str),
    #[error("the grant types are client_credentials, password and refresh_token")]
    UnsupportedGrantType,
    #[error("{0}")]
    InvalidScope(#[from] ScopeError),
    #[error("{0}")]
    Failure(#[from] Failure),
}

#[derive(Serialize)]
struct Body {
    error: &'static str,
    error_description: String,
}

impl OauthError {
    fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidRequest(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            Self::InvalidClient => (StatusCode::UNAUTHORIZED, "invalid_client"),
            Self::InvalidGrant(_) => (StatusCode::BAD_REQUEST, "invalid_grant"),
            Self::UnauthorizedClient(_) => (StatusCode::BAD_REQUEST, "unauthorized_client"),
            Self::UnsupportedGrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
            Self::InvalidScope(_) => (StatusCode::BAD_REQUEST, "invalid_scope"),
            Self::Failure(failure) if failure.passes() => (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"),
            Self::Failure(_) => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        }
    }
}

impl From<sqlx::Error> for OauthError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failure(error.into())
    }
}

impl From<RefreshError> for OauthError {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Invalid => Self::InvalidGrant(error.to_string()),
            RefreshError::Scope(error) => Self::InvalidScope(error),
            RefreshError::Failure(failure) => Self::Failure(failure),
        }
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        if let Self::Failure(failure) = &self {
            failure.log();
        }
        let (status, error) = self.status_and_code();
        let body = Body {
            error,
            error_description: self.to_string(),
        };
        let mut response = no_store((status, Json(body)));
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static(r#"Basic realm="rowlock", charset="UTF-8""#),
            );
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from(failure::RETRY_AFTER.as_secs()));
        }
        response
    }
}

/// An answer that holds, or is about, a secret and must not be kept on its way (RFC 6749, section 5.1).
pub(crate) fn no_store(answer: impl IntoResponse) -> Response {
    ([(CACHE_CONTROL, "no-store"), (PRAGMA, "no-cache")], answer).into_response()
}
