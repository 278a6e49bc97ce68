//! Parameters of the query string, refused with a problem.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::Problem;

/// Like `axum::extract::Query`; what cannot be read is answered with a [`Problem`] that names the parameter.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        axum::extract::Query::from_request_parts(parts, state)
            .await
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| {
                Problem::new(rejection.status(), "invalid-query", "Invalid query").detail(rejection.body_text())
            })
    }
}
