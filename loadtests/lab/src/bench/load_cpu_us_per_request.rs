//! `load.cpu_us_per_request`: what the load engine itself costs, against a small keep-alive answer.
//!
//! The server is as small as one can be and lives on a thread of its own; the engine counts the CPU of its thread only.
//! `load.cpu_us_bare` is what the same exchange costs the barest client: the kernel's share, which differs from machine to
//! machine and which no engine can save. It has no target; the distance between the two is what the engine costs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::Method;
use load::{HttpTarget, Shape};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::{Figure, Measurement, Reading, Target, bare_client};

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[
        Figure {
            name: "load.cpu_us_per_request",
            unit: "us",
            target: Target::AtMost(12.0),
        },
        Figure {
            name: "load.cpu_us_bare",
            unit: "us",
            target: Target::None,
        },
    ],
    run: || Box::pin(measure()),
};

const CONNECTIONS: usize = 20;
const TIMES: usize = 5;
const WINDOW: Duration = Duration::from_secs(3);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nok\n";

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let server = Server::start().await?;
    let url = format!("http://{}/", server.address).parse()?;
    let target = Arc::new(HttpTarget::builder(Method::GET, url).build()?);
    let shape = Shape::closed(CONNECTIONS)
        .warm_up(Duration::from_secs(1))
        .duration(WINDOW);
    let mut singles = Vec::with_capacity(TIMES);
    let mut bare = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let summary = load::run(Arc::clone(&target), &shape, |_| {}).await?;
        anyhow::ensure!(
            summary.ok > 0 && summary.failed() == 0,
            "requests failed: {:?}",
            summary.failures
        );
        let address = server.address;
        let client = move || bare_client::cpu_us_per_request(address, CONNECTIONS, WINDOW);
        let least = tokio::task::spawn_blocking(client).await??;
        eprintln!(
            "  {:.0} requests/s, {:.2} us each, {least:.2} us by the barest client",
            summary.throughput,
            summary.cpu_us_per_iteration()
        );
        singles.push(summary.cpu_us_per_iteration());
        bare.push(least);
    }
    Ok(vec![Reading::of(singles), Reading::of(bare)])
}

/// Answers every request head with the same bytes; ends when dropped.
struct Server {
    address: SocketAddr,
    _alive: oneshot::Sender<()>,
}

impl Server {
    async fn start() -> anyhow::Result<Self> {
        let (told, address) = oneshot::channel();
        let (alive, dropped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("small-server".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = serve(told) => {}
                        _ = dropped => {}
                    }
                });
            })?;
        let address = address.await.context("the small server did not start")?;
        Ok(Self { address, _alive: alive })
    }
}

async fn serve(told: oneshot::Sender<SocketAddr>) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    // The other side waits for it; if it is gone, `dropped` ends this as well.
    let _ = told.send(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(answer(stream));
    }
}

/// Requests without a body, one at a time on a connection: the end of the head is the end of the request.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(ANSWER).await?;
    }
}
