//! Which path goes to which service, and which of them need a token.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use chassis::auth::Verifier;
use chassis::problem::Problem;

use crate::endpoints::{Backend, Endpoints};
use crate::proxy::Proxy;

/// Shared by all routes.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) verifier: Verifier,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) proxy: Arc<Proxy>,
}

const OAUTH2: &str = "/oauth2/{*rest}";
const WELL_KNOWN: &str = "/.well-known/{*rest}";
const AUTH: &str = "/api/auth/{*rest}";
const USERS: &str = "/api/users/{*rest}";
const API: &str = "/api/v1/{*rest}";

/// Anything else is the chassis' 404.
pub(crate) fn router(edge: Edge) -> Router {
    Router::new()
        .route(
            OAUTH2,
            any(async |State(edge): State<Edge>, request: Request| edge.to_user(OAUTH2, request).await),
        )
        .route(
            WELL_KNOWN,
            any(async |State(edge): State<Edge>, request: Request| edge.to_user(WELL_KNOWN, request).await),
        )
        .route(
            AUTH,
            any(async |State(edge): State<Edge>, request: Request| edge.to_user(AUTH, request).await),
        )
        .route(USERS, any(to_users))
        .route(API, any(to_tour_data))
        .with_state(edge)
}

impl Edge {
    async fn to_user(&self, route: &'static str, request: Request) -> Response {
        self.proxy
            .forward(self.endpoints.backend(Backend::User), route, request)
            .await
    }
}

/// As [`to_tour_data`].
async fn to_users(State(edge): State<Edge>, request: Request) -> Result<Response, Problem> {
    chassis::auth::check(&edge.verifier, request.headers()).await?;
    Ok(edge.to_user(USERS, request).await)
}

/// The token is checked before a byte of the body is read: a caller without one cannot make the edge work for it.
async fn to_tour_data(State(edge): State<Edge>, request: Request) -> Result<Response, Problem> {
    chassis::auth::check(&edge.verifier, request.headers()).await?;
    Ok(edge
        .proxy
        .forward(edge.endpoints.backend(Backend::TourData), API, request)
        .await)
}
