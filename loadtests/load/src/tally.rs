//! What a stretch of time holds: latencies of what went well, counts of what did not.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::summary::{Second, histogram, quantile_ms};
use crate::target::{Iteration, Kind};

/// Latencies of what went well, counts of what did not.
pub(crate) struct Tally {
    /// From the moment a request should have been sent, which in a closed loop is when it was.
    pub(crate) latency: Histogram<u64>,
    /// From the moment it was sent; only where the two differ.
    pub(crate) raw: Option<Histogram<u64>>,
    pub(crate) errors: BTreeMap<Kind, u64>,
}

impl Tally {
    /// `raw` for a load that tells intended from actual sends.
    pub(crate) fn new(raw: bool) -> Self {
        Self {
            latency: histogram(),
            raw: raw.then(histogram),
            errors: BTreeMap::new(),
        }
    }

    /// Counts an iteration that began so long after its time had come.
    pub(crate) fn count(&mut self, iteration: &Iteration, waited: Duration) {
        match &iteration.outcome {
            Ok(()) => {
                self.latency.saturating_record(micros(iteration.timed + waited));
                if let Some(raw) = &mut self.raw {
                    raw.saturating_record(micros(iteration.timed));
                }
            }
            Err(failure) => *self.errors.entry(failure.kind).or_default() += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.merge_corrected(other);
        if let (Some(raw), Some(other)) = (&mut self.raw, &other.raw) {
            add(raw, other);
        }
    }

    /// The same without the raw latencies.
    pub(crate) fn merge_corrected(&mut self, other: &Self) {
        add(&mut self.latency, &other.latency);
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.latency.reset();
        if let Some(raw) = &mut self.raw {
            raw.reset();
        }
        self.errors.clear();
    }

    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    pub(crate) fn describe(&self, index: u64, start: Duration, length: Duration, warm_up: bool, level: f64) -> Second {
        Second {
            index,
            start_s: start.as_secs_f64(),
            length_s: length.as_secs_f64(),
            warm_up,
            level,
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

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn add(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    to.add(from).expect("all histograms have the same bounds");
}
