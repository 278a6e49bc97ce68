//! The sends of an open loop, each counted for the plateau in whose window its time came.
//!
//! Of every window: asked for = sent + dropped + skipped.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::plateau::OpenLoop;
use crate::shape::Spacing;
use crate::summary::{histogram, quantile_ms};
use crate::tally::micros;

/// A send that is noticed later than this is the generator's fault.
const OVERDUE: Duration = Duration::from_millis(1);

/// A send whose time has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Send {
    pub(crate) intended: Duration,
    /// The plateau it counts for.
    pub(crate) plateau: Option<usize>,
    /// It found every slot taken.
    pub(crate) late: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) late: u64,
    pub(crate) dropped: u64,
    pub(crate) skipped: u64,
}

pub(crate) struct Sends {
    seed: Option<u64>,
    plateaus: Vec<Counts>,
    /// How long after its time each was sent, or, if it had to wait, was noticed, µs.
    lag: Histogram<u64>,
    /// Since [`Self::take_second`], whatever the phase.
    asked: u64,
    sent: u64,
    overdue: u64,
}

impl Sends {
    pub(crate) fn new(spacing: Spacing, plateaus: usize) -> Self {
        Self {
            seed: match spacing {
                Spacing::Constant => None,
                Spacing::Poisson { seed } => Some(seed),
            },
            plateaus: vec![Counts::default(); plateaus],
            lag: histogram(),
            asked: 0,
            sent: 0,
            overdue: 0,
        }
    }

    /// Its time has come, and was noticed `now`.
    pub(crate) fn asked(&mut self, send: &Send, now: Duration) {
        let lag = now.saturating_sub(send.intended);
        self.asked += 1;
        self.overdue += u64::from(lag > OVERDUE);
        if send.late && send.plateau.is_some() {
            self.lag.saturating_record(micros(lag));
        }
    }

    /// It was made `now`.
    pub(crate) fn sent(&mut self, send: &Send, now: Duration) {
        self.sent += 1;
        let Some(counts) = self.counts(send) else { return };
        counts.sent += 1;
        if send.late {
            counts.late += 1;
        } else {
            self.lag.saturating_record(micros(now.saturating_sub(send.intended)));
        }
    }

    /// Too many wait already.
    pub(crate) fn dropped(&mut self, send: &Send) {
        if let Some(counts) = self.counts(send) {
            counts.dropped += 1;
        }
    }

    /// The load has ended before it.
    pub(crate) fn skipped(&mut self, send: &Send) {
        if let Some(counts) = self.counts(send) {
            counts.skipped += 1;
        }
    }

    /// What was asked for, what was sent, and what of the former was noticed too late, since the last call.
    pub(crate) fn take_second(&mut self) -> (u64, u64, u64) {
        let Self {
            asked, sent, overdue, ..
        } = self;
        (std::mem::take(asked), std::mem::take(sent), std::mem::take(overdue))
    }

    pub(crate) fn of(&self, plateau: usize) -> Counts {
        self.plateaus[plateau]
    }

    /// The whole, for windows of that length together and latencies from the actual send on.
    pub(crate) fn describe(&self, seconds: f64, raw_latency: Histogram<u64>) -> OpenLoop {
        let sum = |field: fn(&Counts) -> u64| self.plateaus.iter().map(field).sum::<u64>();
        let (sent, dropped, skipped) = (sum(|c| c.sent), sum(|c| c.dropped), sum(|c| c.skipped));
        let send_lag_p99_ms = quantile_ms(&self.lag, 0.99);
        OpenLoop {
            asked_rate: if seconds > 0.0 {
                (sent + dropped + skipped) as f64 / seconds
            } else {
                0.0
            },
            seed: self.seed,
            sent,
            late_sends: sum(|c| c.late),
            dropped,
            skipped,
            send_lag_p99_ms,
            generator_limited: send_lag_p99_ms > OVERDUE.as_secs_f64() * 1000.0,
            raw_latency,
        }
    }

    fn counts(&mut self, send: &Send) -> Option<&mut Counts> {
        self.plateaus.get_mut(send.plateau?)
    }
}
