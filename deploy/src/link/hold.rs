//! How long a hot row is held: from the reply to the statement that locks it until the reply to COMMIT or ROLLBACK, as the
//! server sends them.
//!
//! An [`Observer`] follows one connection of PostgreSQL's protocol as it passes and changes nothing of it. What it sees is
//! the server's end: the delay of the link lies between here and the client, and so inside the time that is measured, as
//! often as the client makes a round trip with the lock in its hands.
//!
//! It cannot see a lock that is taken and given back within one answer (one statement without a transaction, a stored
//! function, an UPDATE and its COMMIT in one packet). The last kind is counted as `unmeasured`; the others look like no lock
//! at all. A connection that is encrypted cannot be followed.

mod frames;
mod replies;
mod requests;
mod statement;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use frames::Frames;
use requests::Prepared;

/// The longest hold that is told apart, µs: ten minutes.
const LONGEST_US: u64 = 600_000_000;
/// Two digits are far below the noise of what is measured, and keep the histogram small.
const DIGITS: u8 = 2;

/// The connection does not speak what was expected, or not in the clear; it must not be looked at any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blind(&'static str);

impl std::fmt::Display for Blind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// What the server owes an answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owed {
    /// An execution of the extended protocol; `true` when its statement locks a hot row.
    Execution(bool),
    /// A simple query, whose answer ends in a ReadyForQuery.
    Query(bool),
    /// The end of a series of the extended protocol, answered by a ReadyForQuery.
    Sync,
}

/// One connection, followed.
#[derive(Debug)]
pub(super) struct Observer {
    from_client: Frames,
    from_server: Frames,
    /// The client asked for encryption: one byte without a frame is the answer.
    asked_to_encrypt: bool,
    prepared: Prepared,
    owed: VecDeque<Owed>,
    /// The server takes rows of a COPY in, and passes over every Sync until the client says that they are complete.
    copying: bool,
    /// When the reply to the locking statement passed.
    locked: Option<Instant>,
    /// When the last reply to a COMMIT or ROLLBACK passed; which of them ended the transaction is known at its end only.
    ended: Option<Instant>,
}

/// The holds of all connections since they were last asked for.
#[derive(Debug)]
pub(super) struct Holds {
    histogram: Histogram<u64>,
    total: Duration,
    max: Duration,
    /// Both ends of the hold came in one packet.
    unmeasured: u64,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self {
            from_client: Frames::starting(),
            from_server: Frames::typed(),
            asked_to_encrypt: false,
            prepared: Prepared::default(),
            owed: VecDeque::new(),
            copying: false,
            locked: None,
            ended: None,
        }
    }
}

impl Default for Holds {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, DIGITS);
        Self {
            histogram: histogram.expect("the constants satisfy the histogram's rules"),
            total: Duration::ZERO,
            max: Duration::ZERO,
            unmeasured: 0,
        }
    }
}

impl Holds {
    fn add(&mut self, hold: Duration) {
        if hold.is_zero() {
            self.unmeasured += 1;
            return;
        }
        let micros = u64::try_from(hold.as_micros()).unwrap_or(u64::MAX);
        self.histogram.saturating_record(micros.max(1));
        self.total += hold;
        self.max = self.max.max(hold);
    }

    /// What there was since the last call, and begins anew.
    pub(super) fn take(&mut self) -> Value {
        let max = self.max.as_micros() as u64;
        // A bucket's upper end may be beyond the longest.
        let quantile = |quantile| self.histogram.value_at_quantile(quantile).min(max);
        let buckets = self.histogram.iter_recorded();
        let buckets: Vec<_> = buckets
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
            .collect();
        let taken = json!({
            "count": self.histogram.len(),
            "total_us": self.total.as_micros() as u64,
            "p50_us": quantile(0.50),
            "p95_us": quantile(0.95),
            "max_us": max,
            "unmeasured": self.unmeasured,
            "buckets": buckets,
        });
        self.histogram.reset();
        (self.total, self.max, self.unmeasured) = (Duration::ZERO, Duration::ZERO, 0);
        taken
    }
}

#[cfg(test)]
mod tests;
