//! What a stretch of time holds: latencies of what went well, counts of what did not.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::summary::{Second, histogram, quantile_ms};
use crate::target::{Iteration, Kind};

/// Latencies of what went well, counts of what did not.
pub(crate) struct Tally {
    pub(crate) latency: Histogram<u64>,
    pub(crate) errors: BTreeMap<Kind, u64>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            latency: histogram(),
            errors: BTreeMap::new(),
        }
    }

    pub(crate) fn count(&mut self, iteration: &Iteration) {
        match &iteration.outcome {
            Ok(()) => {
                let micros = u64::try_from(iteration.timed.as_micros()).unwrap_or(u64::MAX);
                self.latency.saturating_record(micros);
            }
            Err(failure) => *self.errors.entry(failure.kind).or_default() += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.latency
            .add(&other.latency)
            .expect("all histograms have the same bounds");
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.latency.reset();
        self.errors.clear();
    }

    pub(crate) fn describe(&self, index: u64, start: Duration, length: Duration, warm_up: bool) -> Second {
        Second {
            index,
            start_s: start.as_secs_f64(),
            length_s: length.as_secs_f64(),
            warm_up,
            ok: self.latency.len(),
            errors: by_name(&self.errors),
            p50_ms: quantile_ms(&self.latency, 0.50),
            p95_ms: quantile_ms(&self.latency, 0.95),
            max_ms: quantile_ms(&self.latency, 1.0),
        }
    }
}

/// The same counts under the names of reports.
pub(crate) fn by_name(errors: &BTreeMap<Kind, u64>) -> BTreeMap<String, u64> {
    errors.iter().map(|(kind, count)| (kind.to_string(), *count)).collect()
}
