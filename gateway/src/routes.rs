//! Which path goes to which service, which of them need a token, and whose requests are counted.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use axum::routing::any;
use chassis::auth::Verifier;
use chassis::problem::Problem;

use crate::endpoints::{Backend, Endpoints};
use crate::limit::{Limiter, Subject};
use crate::proxy::Proxy;

/// Shared by all routes.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) verifier: Verifier,
    pub(crate) limiter: Option<Arc<Limiter>>,
    pub(crate) trusted_proxies: usize,
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

/// What verifiers of tokens ask for. They are services and not clients, and ask for all of them: one that is refused
/// cannot let anybody in.
const VERIFIERS: [&str; 3] = ["/oauth2/jwks", "/oauth2/introspect", "/.well-known/"];

/// Whether a verifier asks: it is not counted, and does not compete for a place with the requests it asks for.
pub(crate) fn is_verifiers(path: &str) -> bool {
    VERIFIERS.iter().any(|each| path.starts_with(each))
}

impl Edge {
    async fn to_user(&self, route: &'static str, request: Request) -> Result<Response, Problem> {
        let path = request.uri().path();
        if is_verifiers(path) {
            return Ok(self.forward(Backend::User, route, request).await);
        }
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(peer)| *peer);
        let subject = Subject::of_client(request.headers(), peer, self.trusted_proxies);
        self.limited(&subject, Backend::User, route, request).await
    }

    /// The token is checked before a byte of the body is read: a caller without one cannot make the edge work for it. Only
    /// then is the request counted, or one client could use up the quota of another by a token it has made up.
    async fn authorised(&self, backend: Backend, route: &'static str, request: Request) -> Result<Response, Problem> {
        let claims = chassis::auth::check(&self.verifier, request.headers()).await?;
        self.limited(&Subject::Token(&claims.sub), backend, route, request)
            .await
    }

    /// Counts the request, and forwards it if it may pass.
    async fn limited(
        &self,
        subject: &Subject<'_>,
        backend: Backend,
        route: &'static str,
        request: Request,
    ) -> Result<Response, Problem> {
        let quota = match &self.limiter {
            Some(limiter) => limiter.admit(subject).await?,
            None => None,
        };
        let mut response = self.forward(backend, route, request).await;
        if let Some(quota) = quota {
            quota.mark(&mut response);
        }
        Ok(response)
    }

    async fn forward(&self, backend: Backend, route: &'static str, request: Request) -> Response {
        self.proxy
            .forward(self.endpoints.backend(backend), route, request)
            .await
    }
}

async fn to_users(State(edge): State<Edge>, request: Request) -> Result<Response, Problem> {
    edge.authorised(Backend::User, USERS, request).await
}

async fn to_tour_data(State(edge): State<Edge>, request: Request) -> Result<Response, Problem> {
    edge.authorised(Backend::TourData, API, request).await
}
