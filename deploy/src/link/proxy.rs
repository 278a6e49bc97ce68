//! The event loop: one thread, all connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use serde_json::json;

use super::acceptor::{self, Arrivals, Connected};
use super::arguments::Arguments;
use super::commands::{self, Command, Commands};
use super::hold::{Holds, Observer};
use super::pair::{Interest, Pair, Side};
use super::timer::Timer;

const STDIN: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const EVENTS: usize = 64;
const READ: usize = 64 * 1024;

/// Runs the link until stdin ends.
pub(super) fn run(arguments: &Arguments) -> io::Result<()> {
    let listen = arguments.listen;
    let listener =
        TcpListener::bind(listen).map_err(|error| describe(&format!("cannot listen on {listen}"), &error))?;
    let address = listener.local_addr()?;
    let arrivals = acceptor::start(listener, arguments.upstream.clone())?;
    let commands = Commands::from_stdin()?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(&arrivals.bell, EpollEvent::new(EpollFlags::EPOLLIN, BELL))?;
    epoll
        .add(&commands, EpollEvent::new(EpollFlags::EPOLLIN, STDIN))
        .map_err(|error| {
            describe(
                "cannot wait for commands: stdin must be a pipe or a terminal",
                &error.into(),
            )
        })?;
    commands::answer(&json!({ "listening": address }))?;
    let mut proxy = Proxy {
        timer: Timer::new(epoll),
        arrivals,
        commands,
        slots: Vec::new(),
        free: Vec::new(),
        releases: BinaryHeap::new(),
        rtt: arguments.rtt,
        cut: false,
        round_trips: 0,
        watch: arguments.watch.clone(),
        holds: Holds::default(),
        late: Late::default(),
        buffer: vec![0; READ],
    };
    while proxy.turn()? {}
    Ok(())
}

fn describe(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

struct Proxy {
    timer: Timer,
    arrivals: Arrivals,
    commands: Commands,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// When to release what to which end. An entry whose connection has gone, or whose place another has taken, releases
    /// nothing that is not due anyway.
    releases: BinaryHeap<Reverse<(Instant, usize, Side)>>,
    rtt: Duration,
    /// No connection passes.
    cut: bool,
    round_trips: u64,
    /// Relations whose locked rows are timed.
    watch: Vec<String>,
    holds: Holds,
    late: Late,
    buffer: Vec<u8>,
}

/// A connection and what epoll watches its two ends for.
struct Slot {
    pair: Pair,
    watched: [Option<Interest>; 2],
    /// Absent where nothing is to be timed, or the connection cannot be followed.
    observer: Option<Observer>,
}

impl Slot {
    /// Follows what has come; a connection that cannot be followed is let alone from then on.
    fn observe(&mut self, side: Side, bytes: &[u8], at: Instant, watch: &[String], holds: &mut Holds) {
        let Some(observer) = &mut self.observer else { return };
        let followed = match side {
            Side::Client => observer.client(bytes, watch),
            Side::Server => observer.server(bytes, at, holds),
        };
        if let Err(why) = followed {
            eprintln!("rowlock-link: a connection is not looked into for locked rows: {why}");
            self.observer = None;
        }
    }
}

/// How much later than due bytes were released.
#[derive(Default)]
struct Late {
    releases: u32,
    sum: Duration,
    max: Duration,
}

impl Late {
    fn add(&mut self, late: Duration) {
        self.releases += 1;
        self.sum += late;
        self.max = self.max.max(late);
    }
}

impl Proxy {
    /// One round: release what is due, wait, read what has come. False when stdin has ended.
    fn turn(&mut self) -> io::Result<bool> {
        self.release_due();
        let next = self.releases.peek().map(|Reverse((due, ..))| *due);
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.timer.wait(next, &mut events)?;
        let mut arrived = false;
        for event in &events[..count] {
            match event.data() {
                STDIN => {
                    if !self.obey()? {
                        return Ok(false);
                    }
                }
                BELL => arrived = true,
                token => self.ready(token, event.events()),
            }
        }
        // Last, so that no event of this round can mean a place that was given to another connection meanwhile.
        if arrived {
            let connected: Vec<Connected> = self.arrivals.take()?.collect();
            connected.into_iter().for_each(|connected| self.add(connected));
        }
        Ok(true)
    }

    fn release_due(&mut self) {
        while let Some(Reverse((due, place, to))) = self.releases.pop() {
            let now = Instant::now();
            if due > now {
                self.releases.push(Reverse((due, place, to)));
                return;
            }
            self.late.add(now - due);
            self.release(place, to, now);
        }
    }

    fn release(&mut self, place: usize, to: Side, now: Instant) {
        let Some(slot) = &mut self.slots[place] else { return };
        if let Some(due) = slot.pair.release(to, now) {
            self.releases.push(Reverse((due, place, to)));
        }
        self.settle(place);
    }

    fn ready(&mut self, token: u64, flags: EpollFlags) {
        let (place, side) = untoken(token);
        let Some(slot) = &mut self.slots[place] else { return };
        let closed = flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
        if closed || flags.contains(EpollFlags::EPOLLIN) {
            let read = slot.pair.read(side, self.rtt / 2, &mut self.buffer);
            self.round_trips += u64::from(read.round_trip);
            if let Some((count, at)) = read.came {
                slot.observe(side, &self.buffer[..count], at, &self.watch, &mut self.holds);
            }
            if let Some(due) = read.due {
                self.releases.push(Reverse((due, place, side.other())));
            }
        }
        if closed {
            slot.pair.hung_up(side);
        }
        if flags.contains(EpollFlags::EPOLLOUT) {
            return self.release(place, side, Instant::now());
        }
        self.settle(place);
    }

    /// After anything has happened to a connection: watches for what it needs now, or forgets it.
    fn settle(&mut self, place: usize) {
        let Some(slot) = &mut self.slots[place] else { return };
        if slot.pair.is_done() {
            // Closing the sockets takes them out of the epoll set.
            self.slots[place] = None;
            self.free.push(place);
            return;
        }
        for side in Side::BOTH {
            let wanted = slot.pair.interest(side);
            let watched = &mut slot.watched[side as usize];
            if *watched == wanted {
                continue;
            }
            let (epoll, stream) = (self.timer.epoll(), slot.pair.stream(side));
            let done = match wanted {
                Some(interest) => epoll.modify(stream, &mut watch(interest, place, side)),
                None => epoll.delete(stream),
            };
            debug_assert!(
                done.is_ok(),
                "a socket that is open and watched can be watched differently"
            );
            *watched = wanted;
        }
    }

    /// Resets every connection and refuses new ones.
    fn cut(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.cut, true) {
            self.arrivals.refuse()?;
        }
        for place in 0..self.slots.len() {
            if let Some(slot) = self.slots[place].take() {
                slot.pair.reset();
                self.free.push(place);
            }
        }
        Ok(())
    }

    fn mend(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.cut, false) {
            self.arrivals.admit()?;
        }
        Ok(())
    }

    fn add(&mut self, connected: Connected) {
        let pair = Pair::new(connected);
        if self.cut {
            // It was on its way in when the link was cut.
            return pair.reset();
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let interest = Interest {
            read: true,
            write: false,
        };
        for side in Side::BOTH {
            let added = self.timer.epoll().add(pair.stream(side), watch(interest, place, side));
            if let Err(error) = added {
                // The kernel's limit on watches: this connection cannot be served, the others can.
                eprintln!("rowlock-link: cannot watch a connection: {error}");
                self.free.push(place);
                return;
            }
        }
        self.slots[place] = Some(Slot {
            pair,
            watched: [Some(interest); 2],
            observer: (!self.watch.is_empty()).then(Observer::new),
        });
    }

    /// Does what stdin asks; false when it has ended.
    fn obey(&mut self) -> io::Result<bool> {
        let Some(lines) = self.commands.read()? else {
            return Ok(false);
        };
        for line in lines {
            let answer = match line {
                Ok(Command::Rtt(rtt)) => {
                    self.rtt = rtt;
                    json!({ "rtt_us": self.rtt.as_micros() as u64 })
                }
                Ok(Command::Cut) => {
                    self.cut()?;
                    json!({ "cut": true })
                }
                Ok(Command::Mend) => {
                    self.mend()?;
                    json!({ "cut": false })
                }
                Ok(Command::Stats) => self.stats(),
                Ok(Command::Holds) => json!({ "holds": self.holds.take() }),
                Err(reason) => commands::refusal(&reason),
            };
            commands::answer(&answer)?;
        }
        Ok(true)
    }

    fn stats(&mut self) -> serde_json::Value {
        let late = std::mem::take(&mut self.late);
        let micros = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
        json!({
            "rtt_us": self.rtt.as_micros() as u64,
            "connections": self.slots.iter().flatten().count(),
            "round_trips": self.round_trips,
            "late_us": { "mean": micros(late.sum / late.releases.max(1)), "max": micros(late.max) },
        })
    }
}

fn watch(interest: Interest, place: usize, side: Side) -> EpollEvent {
    let mut flags = EpollFlags::empty();
    flags.set(EpollFlags::EPOLLIN, interest.read);
    flags.set(EpollFlags::EPOLLOUT, interest.write);
    EpollEvent::new(flags, (place as u64) << 1 | side as u64)
}

fn untoken(token: u64) -> (usize, Side) {
    let side = if token & 1 == 0 { Side::Client } else { Side::Server };
    ((token >> 1) as usize, side)
}
