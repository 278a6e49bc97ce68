//! The edge: token check, body limit, timeouts, and round robin over the replicas of each service.
//!
//! Bodies are streamed in both directions and never held as a whole. What a token says is not passed on in headers:
//! the services check it again, so that nothing has to trust who connects to them.

mod config;
mod endpoints;
mod proxy;
mod routes;

use std::sync::Arc;

use chassis::auth::Verifier;
use chassis::service::{App, Background, Chassis, Service, StartError};

pub use config::Config;

use endpoints::Endpoints;
use proxy::Proxy;
use routes::Edge;

/// The service.
pub struct Gateway;

impl Service for Gateway {
    const NAME: &'static str = "gateway";
    type Config = Config;

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        let verifier = Verifier::new(&config.auth)?;
        let endpoints = Arc::new(Endpoints::load(config.endpoints_file.as_str())?);
        let edge = Edge {
            verifier,
            endpoints: endpoints.clone(),
            proxy: Arc::new(Proxy::new(&config)),
        };
        Ok(App {
            router: routes::router(edge),
            // None on purpose: one lost backend would otherwise take every route down with it.
            dependencies: Vec::new(),
            background: vec![Background::new("endpoints", endpoints::watch(endpoints, cx.drain))],
        })
    }
}
