//! One connection through the link: two sockets and the lanes between them.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::acceptor::Connected;
use super::lane::{Lane, Released};

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    fn index(self) -> usize {
        self as usize
    }
}

/// What the event loop has to watch a socket for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

struct End {
    stream: Socket,
    /// What this end has sent, on its way to the other.
    sent: Lane,
    /// This end sends no more, or nobody is left to send to; then it is not read from.
    silent: bool,
    /// The lane from the *other* end waits until this one is writable.
    blocked: bool,
    /// This end was told that the other sends no more, or cannot be told any more.
    told: bool,
}

impl End {
    fn new(stream: Socket) -> Self {
        Self {
            stream,
            sent: Lane::default(),
            silent: false,
            blocked: false,
            told: false,
        }
    }
}

/// A client, its server, and what is on its way between them.
pub(super) struct Pair {
    ends: [End; 2],
    spoke_last: Side,
}

/// What a read brought.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Read {
    /// It was the first answer after something the client said.
    pub(super) round_trip: bool,
    /// The time for [`Pair::release`], when nothing was on the way before.
    pub(super) due: Option<Instant>,
    /// How many bytes of the buffer came, and when.
    pub(super) came: Option<(usize, Instant)>,
}

impl Pair {
    pub(super) fn new(connected: Connected) -> Self {
        let ends = [End::new(connected.client), End::new(connected.server)];
        Self {
            ends,
            spoke_last: Side::Server,
        }
    }

    pub(super) fn stream(&self, side: Side) -> &Socket {
        &self.ends[side.index()].stream
    }

    /// What to watch this end for; `None` when both its directions are done and it must not be watched at all, since a
    /// socket that is closed both ways never stops reporting it.
    pub(super) fn interest(&self, side: Side) -> Option<Interest> {
        let end = &self.ends[side.index()];
        (!end.silent || !end.told).then(|| Interest {
            read: !end.silent && !end.sent.is_full(),
            write: end.blocked,
        })
    }

    /// True when nothing can pass any more.
    pub(super) fn is_done(&self) -> bool {
        self.ends.iter().all(|end| end.told)
    }

    /// Reads once from an end that is readable and puts it on its way.
    pub(super) fn read(&mut self, side: Side, delay: Duration, buffer: &mut [u8]) -> Read {
        let end = &mut self.ends[side.index()];
        let mut read = Read::default();
        if end.silent {
            return read;
        }
        let idle = end.sent.next_due().is_none();
        let result = end.stream.read(buffer);
        // After the read: what has come while others were served must not be released early.
        let now = Instant::now();
        let due = now + delay;
        match result {
            Ok(count) if count > 0 => {
                read.round_trip = side == Side::Server && self.spoke_last == Side::Client;
                self.spoke_last = side;
                end.sent.push(&buffer[..count], due);
                read.came = Some((count, now));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // A reset is passed on as an end: what was sent before it still arrives.
            Ok(_) | Err(_) => {
                end.silent = true;
                end.sent.end(due);
            }
        }
        read.due = end.sent.next_due().filter(|_| idle);
        read
    }

    /// Writes what is due for an end; gives the time of the next release, if there is one to wait for.
    pub(super) fn release(&mut self, to: Side, now: Instant) -> Option<Instant> {
        let [client, server] = &mut self.ends;
        let (from, to) = match to {
            Side::Client => (server, client),
            Side::Server => (client, server),
        };
        if to.told {
            return None;
        }
        let released = from.sent.release(now, &to.stream);
        to.blocked = released == Released::Blocked;
        match released {
            Released::All => from.sent.next_due(),
            Released::Blocked => None,
            Released::End => {
                to.told = true;
                // Fails when the receiver has hung up already, which is as good.
                let _ = to.stream.shutdown(Shutdown::Write);
                None
            }
            Released::Broken => {
                Self::drop_lane(from, to);
                None
            }
        }
    }

    /// Breaks the connection off: whoever has data on the way learns it by a reset, not by an orderly end.
    pub(super) fn reset(self) {
        for end in self.ends {
            // Without it the close below says goodbye in the orderly way, which is not a cut but as final.
            let _ = end.stream.set_linger(Some(Duration::ZERO));
        }
    }

    /// An end was found closed in both directions: nothing sent to it can arrive.
    pub(super) fn hung_up(&mut self, side: Side) {
        let [client, server] = &mut self.ends;
        match side {
            Side::Client => Self::drop_lane(server, client),
            Side::Server => Self::drop_lane(client, server),
        }
    }

    fn drop_lane(from: &mut End, to: &mut End) {
        from.sent = Lane::default();
        from.silent = true;
        to.told = true;
        to.blocked = false;
    }
}
