//! Segments of the path, refused with a problem.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::Problem;

/// Like `axum::extract::Path`; a segment that is no UTF-8 or not of the type is answered with a [`Problem`].
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        axum::extract::Path::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Path(value)| Self(value))
            .map_err(|rejection| {
                Problem::new(rejection.status(), "invalid-path", "Invalid path").detail(rejection.body_text())
            })
    }
}
