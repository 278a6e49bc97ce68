//! The smallest server there can be, on a thread of its own: what a generator costs shows against it.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

pub(super) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nok\n";

/// Answers every request head with the same bytes; ends when dropped.
pub(super) struct SmallServer {
    pub(super) address: SocketAddr,
    _alive: oneshot::Sender<()>,
}

impl SmallServer {
    pub(super) async fn start() -> anyhow::Result<Self> {
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
