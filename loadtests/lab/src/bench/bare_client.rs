//! The least a load generator can cost: one thread, epoll, the same bytes out and a look for the end of the answer in.
//!
//! No parsing, no clock, no histogram. What it uses is the kernel's share, and no engine on this machine can use less.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{UsageWho, getrusage};

/// How often the clock is asked, in answers.
const LOOK_AFTER: u64 = 256;
/// Without an answer for this long the server is gone.
const PATIENCE_MS: u16 = 5_000;

/// CPU time per request of `connections` that each always have one request under way, µs.
///
/// Blocks the calling thread, whose CPU time is counted, for `duration`.
///
/// # Errors
/// The server refuses, hangs up, or does not answer.
pub(super) fn cpu_us_per_request(address: SocketAddr, connections: usize, duration: Duration) -> anyhow::Result<f64> {
    let request = format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut streams = Vec::with_capacity(connections);
    for token in 0..connections {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, token as u64))?;
        streams.push(stream);
    }
    let cpu_before = cpu()?;
    for stream in &mut streams {
        stream.write_all(request.as_bytes())?;
    }
    let end = Instant::now() + duration;
    let mut answers = 0_u64;
    let mut buffer = [0; 4096];
    let mut events = [EpollEvent::empty(); 64];
    loop {
        let ready = epoll.wait(&mut events, EpollTimeout::from(PATIENCE_MS))?;
        anyhow::ensure!(ready > 0, "no answer within {PATIENCE_MS} ms");
        for event in &events[..ready] {
            let stream = usize::try_from(event.data())
                .ok()
                .and_then(|token| streams.get_mut(token));
            let stream = stream.context("epoll told a token that nobody gave it")?;
            // The small server writes an answer in one piece.
            anyhow::ensure!(stream.read(&mut buffer)? > 0, "the server hung up");
            answers += 1;
            if answers.is_multiple_of(LOOK_AFTER) && Instant::now() >= end {
                return Ok((cpu()? - cpu_before).as_secs_f64() * 1e6 / answers as f64);
            }
            stream.write_all(request.as_bytes())?;
        }
    }
}

/// CPU time of the calling thread, user and kernel.
fn cpu() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let time = |value: nix::sys::time::TimeVal| -> anyhow::Result<Duration> {
        Ok(Duration::from_micros(
            u64::try_from(value.tv_sec())? * 1_000_000 + u64::try_from(value.tv_usec())?,
        ))
    };
    Ok(time(usage.user_time())? + time(usage.system_time())?)
}
