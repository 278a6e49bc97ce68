//! The link: a TCP proxy that puts a network's round trip between two processes of one machine.
//!
//! Each direction holds what it carries for half the round trip. What arrives is stamped and released when its time has
//! come, in order and without a limit on the rate, so that pipelined requests share one delay as they would on a wire.
//! The TCP handshake itself is not delayed: a client is connected at once, and pays with its first byte.
//!
//! One thread does it all with epoll and a kernel timer: tokio's timers are a millisecond coarse.
//!
//! The process is `rowlock-link`. It reads commands from stdin, a line each, and answers each with a line of JSON:
//!
//! | command | answer |
//! |---|---|
//! | (at start) | `{"listening":"127.0.0.1:17500"}` |
//! | `rtt 1000` | `{"rtt_us":1000}`; holds for everything that arrives from then on |
//! | `cut` | `{"cut":true}`; every connection is reset and new ones are refused |
//! | `mend` | `{"cut":false}`; connections are taken again |
//! | `stats` | `{"rtt_us":1000,"connections":10,"round_trips":8701,"late_us":{"mean":3.1,"max":95.0}}` |
//! | `holds` | `{"holds":{"count":12,"total_us":…,"p50_us":…,"p95_us":…,"max_us":…,"unmeasured":0,"buckets":[[µs,count],…]}}` |
//! | anything else | `{"error":"…"}` |
//!
//! `round_trips` counts, since the start, how often the server spoke after the client had: requests that were pipelined
//! together are one. `late_us` is how much later than due bytes were released since the last `stats`. `holds` are the times
//! since the last `holds` for which rows of a `--watch`ed relation were locked, see `hold.rs`.
//! It ends when stdin does, so that it cannot outlive whoever started it.

mod acceptor;
mod arguments;
mod commands;
mod hold;
mod lane;
mod pair;
mod proxy;
mod timer;

use arguments::Arguments;
pub(crate) use arguments::Upstream;

/// The body of `rowlock-link`; gives the exit status: 2 for wrong arguments, 3 when the port cannot be had.
pub fn main(arguments: &[String]) -> u8 {
    let arguments = match Arguments::parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("rowlock-link: {error}\n{}", arguments::USAGE);
            return 2;
        }
    };
    match proxy::run(&arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("rowlock-link: {error}");
            3
        }
    }
}
