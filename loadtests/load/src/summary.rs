//! What a run says: per second while it runs, as a whole at its end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::buckets;
use crate::plateau::{OpenLoop, Part, Plateau};

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
    /// True outside of a window: in a warm-up or a ramp.
    pub warm_up: bool,
    /// Users, or requests a second asked for, when it began.
    #[serde(default)]
    pub level: f64,
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

/// A whole run. Unless a field says otherwise, it speaks of the iterations that ended inside a window, those of all plateaus
/// together; [`Summary::plateaus`] has each by itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Virtual users: of a closed loop the most there were to be, of an open one the most requests that were under way at
    /// once.
    pub users: usize,
    /// Iterations that did what they should.
    pub ok: u64,
    /// Iterations that did not, by kind.
    pub errors: BTreeMap<String, u64>,
    /// What the first failure of each kind said, at any time of the run.
    pub failures: BTreeMap<String, String>,
    /// Length of the windows, s. When a limit of iterations ended the load early: until the last end.
    pub seconds: f64,
    /// `ok` per second.
    pub throughput: f64,
    /// Latencies of the `ok` iterations, µs; of an open loop from the intended send on.
    #[serde(with = "buckets")]
    pub latency: Histogram<u64>,
    /// Mean of a whole iteration, `ok` or not, with its untimed parts and the think time asked for, s. Time that a user
    /// lost between two iterations is not in it, which is what makes Little's law a check of the generator. Of an open loop
    /// from the actual send on.
    pub cycle_mean_s: f64,
    /// CPU time of the generator during the windows, s.
    pub generator_cpu_s: f64,
    /// Iterations that ended in a warm-up or a ramp, `ok` or not.
    pub warm_up: u64,
    /// Iterations that ended after the last window, within the grace, `ok` or not.
    pub late: u64,
    /// Iterations that were cut off at the end of the grace; their outcome is unknown.
    pub abandoned: u64,
    /// The run second by second, warm-up included; some 3,600 entries at most, each longer in a longer run.
    pub series: Vec<Second>,
    /// The plateaus that were reached, in their order.
    #[serde(default)]
    pub plateaus: Vec<Plateau>,
    /// The parts of a target that has several.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What only an open loop has.
    #[serde(default)]
    pub open: Option<OpenLoop>,
    /// Why a threshold or a missed rate ended the load before its time.
    #[serde(default)]
    pub aborted: Option<String>,
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

    /// Number of users by Little's law, rate × time in the loop. In a closed loop of one plateau, well below `users`, the
    /// generator itself was late.
    pub fn little_n(&self) -> f64 {
        (self.ok + self.failed()) as f64 / self.seconds * self.cycle_mean_s
    }

    /// CPU time of the generator per iteration, µs.
    pub fn cpu_us_per_iteration(&self) -> f64 {
        self.generator_cpu_s * 1e6 / (self.ok + self.failed()).max(1) as f64
    }
}
