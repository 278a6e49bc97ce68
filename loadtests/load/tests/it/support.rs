//! What the tests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use load::{Failure, HttpBuilder, HttpTarget, Iteration, Shape, Summary, Target, Url};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const MS: Duration = Duration::from_millis(1);

/// Users for a window, without warm-up or limit.
pub(crate) fn closed(users: usize, duration: Duration) -> Shape {
    Shape::closed(users).duration(duration)
}

/// Up to a number of iterations, with more time than they need.
pub(crate) fn limited(users: usize, iterations: u64) -> Shape {
    closed(users, Duration::from_secs(60)).max_iterations(iterations)
}

/// Takes `latency` for each iteration and counts them.
pub(crate) struct Sleeper {
    latency: Duration,
    done: Arc<AtomicU64>,
}

impl Sleeper {
    pub(crate) fn of(latency: Duration) -> (Self, Arc<AtomicU64>) {
        let done = Arc::new(AtomicU64::new(0));
        (
            Self {
                latency,
                done: Arc::clone(&done),
            },
            done,
        )
    }
}

impl Target for Sleeper {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        let begun = std::time::Instant::now();
        tokio::time::sleep(self.latency).await;
        self.done.fetch_add(1, Ordering::Relaxed);
        Iteration {
            timed: begun.elapsed(),
            outcome: Ok(()),
        }
    }
}

pub(crate) async fn run<T: Target>(target: T, shape: &Shape) -> Summary {
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
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

/// A server that does as `behave` says with each connection, and how many there were.
pub(crate) async fn misbehaving<F>(behave: impl Fn(TcpStream) -> F + Send + 'static) -> (SocketAddr, Arc<AtomicU64>)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(behave(stream));
        }
    });
    (address, connections)
}

/// The errors of a summary as (kind, count), in the order of the kinds.
pub(crate) fn errors(summary: &Summary) -> Vec<(&str, u64)> {
    summary
        .errors
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .collect()
}
