//! A server whose answers take a known time: a thread a connection, which sleeps. So the answers are as precise as the kernel's
//! timers, and requests that came apart are answered apart; timers that count in milliseconds would bundle them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::small_server::ANSWER;

/// Ends when dropped; its connections end with those who made them.
pub(super) struct SlowServer {
    pub(super) address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl SlowServer {
    /// Every answer takes as long as `takes` says for the moment of its request, counted from the start.
    pub(super) fn start(takes: fn(Duration) -> Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let start = Instant::now();
        std::thread::Builder::new()
            .name("slow-server".to_owned())
            .spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    // An error is the end of the connection, and whoever made it sees that.
                    std::thread::spawn(move || answer(stream, start, takes));
                }
            })?;
        Ok(Self { address, ended })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts; if that fails it has ended already.
        let _ = TcpStream::connect(self.address);
    }
}

/// Requests without a body, one at a time on a connection.
fn answer(mut stream: TcpStream, start: Instant, takes: fn(Duration) -> Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::with_capacity(1024);
    let mut buffer = [0; 1024];
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            let length = stream.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            head.extend_from_slice(&buffer[..length]);
        }
        std::thread::sleep(takes(start.elapsed()));
        stream.write_all(ANSWER)?;
    }
}
