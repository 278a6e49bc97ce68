//! What a run says: per second while it runs, as a whole at its end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest latency that is told apart, µs: ten minutes. Longer ones count as this one.
const LONGEST_US: u64 = 600_000_000;
/// Significant digits of a recorded latency.
const DIGITS: u8 = 3;

/// The histogram every latency of this crate goes into.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_US, DIGITS).expect("the constants satisfy the histogram's rules")
}

/// A quantile of a histogram of µs, in ms; 0 when it is empty.
pub(crate) fn quantile_ms(histogram: &Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1000.0
}

/// One second of a run, or a few of them merged in a very long one. Iterations belong to the second in which they ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Second {
    /// Position in the run, from 0, warm-up included.
    pub index: u64,
    /// When it began, s after the run did.
    pub start_s: f64,
    /// How long it was, s: 1, less at the end of a phase, more in a merged series.
    pub length_s: f64,
    /// True before the window.
    pub warm_up: bool,
    /// Iterations that did what they should.
    pub ok: u64,
    /// Those that did not, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Median latency of the `ok` ones, ms; 0 when there were none.
    pub p50_ms: f64,
    /// Their 95th percentile, ms.
    pub p95_ms: f64,
    /// Their longest latency, ms.
    pub max_ms: f64,
}

/// A whole run. Unless a field says otherwise, it speaks of the iterations that ended inside the window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Virtual users.
    pub users: usize,
    /// Iterations that did what they should.
    pub ok: u64,
    /// Iterations that did not, by kind.
    pub errors: BTreeMap<String, u64>,
    /// What the first failure of each kind said, at any time of the run.
    pub failures: BTreeMap<String, String>,
    /// Length of the window, s. When a limit of iterations ended the load early: until the last end.
    pub seconds: f64,
    /// `ok` per second.
    pub throughput: f64,
    /// Latencies of the `ok` iterations, µs.
    #[serde(with = "buckets")]
    pub latency: Histogram<u64>,
    /// Mean of a whole iteration, `ok` or not, with its untimed parts and the think time asked for, s. Time that a user
    /// lost between two iterations is not in it, which is what makes Little's law a check of the generator.
    pub cycle_mean_s: f64,
    /// CPU time of the generator during the window, s.
    pub generator_cpu_s: f64,
    /// Iterations that ended in the warm-up, `ok` or not.
    pub warm_up: u64,
    /// Iterations that ended after the window, within the grace, `ok` or not.
    pub late: u64,
    /// Iterations that were cut off at the end of the grace; their outcome is unknown.
    pub abandoned: u64,
    /// The run second by second, warm-up included; at most 3,600 entries a phase, each longer in a longer run.
    pub series: Vec<Second>,
}

impl Summary {
    /// Iterations that did not do what they should.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// A quantile (0 to 1) of the latency, ms.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        quantile_ms(&self.latency, quantile)
    }

    /// Number of users by Little's law, rate × time in the loop. Well below `users`, the generator itself was late.
    pub fn little_n(&self) -> f64 {
        (self.ok + self.failed()) as f64 / self.seconds * self.cycle_mean_s
    }

    /// CPU time of the generator per iteration, µs.
    pub fn cpu_us_per_iteration(&self) -> f64 {
        self.generator_cpu_s * 1e6 / (self.ok + self.failed()).max(1) as f64
    }
}

/// A histogram as text: the non-empty buckets as (µs, count), with the usual quantiles for whoever reads the raw file.
mod buckets {
    use super::*;
    use serde::{Deserializer, Serializer};

    #[derive(Serialize)]
    struct Written {
        unit: &'static str,
        p50: u64,
        p95: u64,
        p99: u64,
        max: u64,
        buckets: Vec<(u64, u64)>,
    }

    #[derive(Deserialize)]
    struct Read {
        buckets: Vec<(u64, u64)>,
    }

    pub(super) fn serialize<S: Serializer>(histogram: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = histogram.iter_recorded();
        Written {
            unit: "us",
            p50: histogram.value_at_quantile(0.50),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            max: histogram.max(),
            buckets: buckets
                .map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
                .collect(),
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
        let mut histogram = histogram();
        for (value, count) in Read::deserialize(deserializer)?.buckets {
            histogram.saturating_record_n(value, count);
        }
        Ok(histogram)
    }
}
