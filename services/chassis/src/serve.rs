//! One listener: accepts, serves, and stops without losing a request that has reached it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a connection may take to send a request's head, counted from the end of the one before: this is also how long
/// it may be idle. Longer than any balancer in front keeps an idle connection: closing one at the moment at which the
/// balancer takes it for a request loses that request, and one that is no GET is not sent again. Who sends a head slowly
/// meets the balancer's own bound.
const HEAD_TIMEOUT: Duration = Duration::from_secs(600);
/// How long open connections are still served once the listener is closed. A client that keeps its connection alive
/// may be sending its next request at the very moment we stop: it gets its answer, with `Connection: close`, instead
/// of a reset.
const LINGER: Duration = Duration::from_millis(200);
/// Pause after a failed accept (out of file descriptors), which would otherwise spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener that is bound and not yet served.
pub(crate) struct Bound {
    listener: TcpListener,
    pub(crate) addr: SocketAddr,
}

impl Bound {
    pub(crate) async fn new(addr: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(addr)
            .await
            .with_context(|| format!("cannot listen on {addr}"))?;
        let addr = listener.local_addr().context("the listener has no address")?;
        Ok(Self { listener, addr })
    }

    pub(crate) fn serve(self, router: Router) -> Server {
        let connections = Connections {
            router,
            tasks: TaskTracker::new(),
            finish: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let stop = CancellationToken::new();
        let accepting = tokio::spawn(accept(self.listener, connections.clone(), stop.clone()));
        Server {
            connections,
            stop,
            accepting,
        }
    }
}

/// A listener being served. Dropping it aborts its connections.
pub(crate) struct Server {
    connections: Connections,
    stop: CancellationToken,
    accepting: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Closes the listener and resolves when the last connection has ended. May be dropped and called again.
    pub(crate) async fn finish(&mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        if !self.accepting.is_finished() {
            (&mut self.accepting)
                .await
                .map_err(|error| anyhow!("the listener failed: {error}"))?;
        }
        self.connections.tasks.close();
        if tokio::time::timeout(LINGER, self.connections.tasks.wait())
            .await
            .is_err()
        {
            self.connections.finish.cancel();
            self.connections.tasks.wait().await;
        }
        Ok(())
    }

    /// Connections still open.
    pub(crate) fn open(&self) -> usize {
        self.connections.tasks.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
        self.connections.abort.cancel();
    }
}

async fn accept(listener: TcpListener, connections: Connections, stop: CancellationToken) {
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => connections.serve(stream, peer),
            Err(error) => {
                tracing::warn!(error = %error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // The kernel has completed handshakes that nobody accepted yet; closing the listener would reset them, with the
    // requests they already carry.
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, peer)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            connections.serve(stream, peer);
        }
    }
}

#[derive(Clone)]
struct Connections {
    router: Router,
    tasks: TaskTracker,
    /// Connections end after the request they are at.
    finish: CancellationToken,
    /// Connections end now.
    abort: CancellationToken,
}

impl Connections {
    fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        // Small answers must not wait for the client's delayed acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = %error, "cannot set TCP_NODELAY");
        }
        let Self {
            router, finish, abort, ..
        } = self.clone();
        let router = router.layer(Extension(ConnectInfo(peer)));
        self.tasks.spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT);
            builder.http2().timer(TokioTimer::new());
            let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            let mut connection = std::pin::pin!(connection);
            let ended = abort
                .run_until_cancelled(async {
                    if let Some(ended) = finish.run_until_cancelled(connection.as_mut()).await {
                        return ended;
                    }
                    connection.as_mut().graceful_shutdown();
                    connection.await
                })
                .await;
            if let Some(Err(error)) = ended {
                tracing::debug!(error = error.to_string(), "a connection failed");
            }
        });
    }
}
