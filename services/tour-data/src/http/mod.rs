//! The HTTP API: one handler a file.

mod create_tour;
mod get_tenant;
mod get_tour;
mod list_tours;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef};
use axum::http::StatusCode;
use axum::routing::get;
use chassis::auth::{Claims, Verifier};
use chassis::problem::Problem;

use crate::cache::TourCache;
use crate::placement::PlacementError;
use crate::plan::{Clock, Plan, ReadError};
use crate::store::StoreError;
use crate::tour::TenantKey;

/// Largest request body, in bytes: sixteen times the published payload.
const BODY_LIMIT: usize = 256 * 1024;
/// When a client may try again after something that the service depends on was away.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What handlers share.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) plan: Arc<Plan>,
    pub(crate) cache: Arc<TourCache>,
    pub(crate) verifier: Verifier,
    pub(crate) clock: Clock,
}

impl FromRef<State> for Verifier {
    fn from_ref(state: &State) -> Self {
        state.verifier.clone()
    }
}

pub(crate) fn router(state: State) -> Router {
    Router::new()
        .route(
            "/api/v1/tours",
            get(list_tours::list_tours).post(create_tour::create_tour),
        )
        .route("/api/v1/tours/{id}", get(get_tour::get_tour))
        .route("/api/v1/tenants/{key}", get(get_tenant::get_tenant))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(state)
}

/// The tenant whose token this is.
fn own_tenant(claims: &Claims) -> Result<TenantKey, Problem> {
    let key = claims.tenant.as_deref().and_then(TenantKey::parse);
    key.ok_or_else(|| foreign_tenant("The token names no tenant; get one that does."))
}

/// Lets a request pass only if it is about the tenant of its token. Which tenants exist is not told to others.
fn require_tenant(claims: &Claims, key: &str) -> Result<TenantKey, Problem> {
    let own = own_tenant(claims)?;
    if own.as_str() == key {
        return Ok(own);
    }
    Err(foreign_tenant(format!(
        "The request is about another tenant than the token's, which is {own}."
    )))
}

fn foreign_tenant(detail: impl Into<String>) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "tenant-mismatch",
        "The token is for another tenant",
    )
    .detail(detail)
}

fn unavailable(cause: &dyn std::fmt::Display) -> Problem {
    tracing::warn!(%cause, "answering 503");
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "database-unavailable",
        "The database is not available",
    )
    .detail("Nothing was written. Try again shortly.")
    .retry_after(RETRY_AFTER)
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(error) => unavailable(&error),
            error @ (StoreError::NotFound | StoreError::Other(_)) => Self::internal(error),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Placement(error) => error.into(),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<PlacementError> for Problem {
    fn from(error: PlacementError) -> Self {
        match error {
            PlacementError::Unknown(key) => Self::new(StatusCode::NOT_FOUND, "unknown-tenant", "Unknown tenant")
                .detail(format!("No tenant has the key {key}.")),
            PlacementError::NotConfigured { .. } => Self::internal(error),
            PlacementError::Unavailable(error) => error.into(),
        }
    }
}
