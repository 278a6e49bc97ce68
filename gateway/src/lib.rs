//! The edge: token check, rate limit, body limit, deadlines, and round robin over the ready replicas of each service.
//!
//! Bodies are streamed in both directions. What a token says is not passed on in headers: the services check it again,
//! so that nothing has to trust who connects to them.

mod config;
mod endpoints;
mod limit;
mod proxy;
mod routes;

use std::sync::Arc;

use chassis::auth::Verifier;
use chassis::service::{App, Background, Chassis, Service, StartError};

pub use config::{Config, WithoutRedis};
pub use limit::AlgorithmName;

use endpoints::Endpoints;
use limit::Limiter;
use proxy::Proxy;
use routes::Edge;

/// The service.
pub struct Gateway;

impl Service for Gateway {
    const NAME: &'static str = "gateway";
    type Config = Config;

    fn waited_for(path: &str) -> bool {
        routes::is_verifiers(path)
    }

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        let verifier = Verifier::new(&config.auth)?;
        verifier.prefetch();
        let endpoints = Endpoints::load(config.endpoints_file.as_str())?;
        let (limiter, redis) = Limiter::new(&config)?.unzip();
        let edge = Edge {
            verifier,
            limiter: limiter.map(Arc::new),
            trusted_proxies: config.trusted_proxies,
            endpoints: Arc::clone(&endpoints),
            proxy: Arc::new(Proxy::new(&config)),
        };
        Ok(App {
            router: routes::router(edge),
            dependencies: endpoints.dependencies().into_iter().chain(redis).collect(),
            background: vec![
                Background::new("endpoints", endpoints::watch(Arc::clone(&endpoints), cx.drain.clone())),
                Background::new("replica health", endpoints::check(endpoints, cx.drain)),
            ],
        })
    }
}
