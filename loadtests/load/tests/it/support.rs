//! What the tests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Closed, HttpBuilder, HttpTarget, Summary, Target, Url};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// Users without think time for a window, without warm-up or limit.
pub(crate) fn closed(users: usize, duration: Duration) -> Closed {
    Closed {
        users,
        warm_up: Duration::ZERO,
        duration,
        think: Duration::ZERO,
        max_iterations: None,
    }
}

/// Up to a number of iterations, with more time than they need.
pub(crate) fn limited(users: usize, iterations: u64) -> Closed {
    Closed {
        max_iterations: Some(iterations),
        ..closed(users, Duration::from_secs(60))
    }
}

pub(crate) async fn run<T: Target>(target: T, shape: &Closed) -> Summary {
    load::run(Arc::new(target), shape, |_| {}).await.unwrap()
}

pub(crate) fn url(address: SocketAddr, path: &str) -> Url {
    format!("http://{address}{path}").parse().unwrap()
}

pub(crate) fn get(address: SocketAddr) -> HttpBuilder {
    HttpTarget::builder(::http::Method::GET, url(address, "/"))
}

pub(crate) fn post(address: SocketAddr) -> HttpBuilder {
    HttpTarget::builder(::http::Method::POST, url(address, "/"))
}

/// Serves a router until the test's runtime ends.
pub(crate) async fn serve(router: axum::Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// The errors of a summary as (kind, count), in the order of the kinds.
pub(crate) fn errors(summary: &Summary) -> Vec<(&str, u64)> {
    summary
        .errors
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect()
}
