//! Services behind the edge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use tokio::net::TcpListener;

/// Serves until the test ends.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let addr = listener.local_addr().expect("has an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    addr
}

/// Counts its requests and answers each with the length of its body.
pub(crate) struct Counter {
    pub(crate) addr: SocketAddr,
    seen: Arc<AtomicU64>,
}

impl Counter {
    pub(crate) async fn start() -> Self {
        let seen = Arc::new(AtomicU64::new(0));
        let count = async |State(seen): State<Arc<AtomicU64>>, body: Bytes| {
            seen.fetch_add(1, Ordering::SeqCst);
            body.len().to_string()
        };
        let addr = serve(Router::new().fallback(count).with_state(seen.clone())).await;
        Self { addr, seen }
    }

    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }
}

/// Answers each request with its own method, URI and headers, one a line.
pub(crate) async fn echo() -> SocketAddr {
    serve(Router::new().fallback(async |request: Request| {
        let mut text = format!("{} {}\n", request.method(), request.uri());
        for (name, value) in request.headers() {
            text.push_str(&format!("{name}: {}\n", value.to_str().unwrap_or("?")));
        }
        (
            [
                ("keep-alive", "timeout=5"),
                ("proxy-authenticate", "Basic"),
                ("x-kept", "yes"),
            ],
            text,
        )
            .into_response()
    }))
    .await
}
