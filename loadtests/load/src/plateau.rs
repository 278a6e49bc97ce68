//! What a run says of one plateau, of one part of its target, and of being an open loop.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::buckets;
use crate::summary::quantile_ms;

/// One plateau: the iterations that ended inside its window, and the sends that should have been made in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plateau {
    /// Users, or requests a second asked for.
    pub level: f64,
    /// Load before its window, s; as it came to be, where the end was decided while it lasted.
    pub warm_up_s: f64,
    /// Length of its window, s.
    pub seconds: f64,
    /// Iterations that did what they should.
    pub ok: u64,
    /// Iterations that did not, by kind.
    pub errors: BTreeMap<String, u64>,
    /// `ok` per second.
    pub throughput: f64,
    /// Latencies of the `ok` iterations, µs; of an open loop from the intended send on.
    #[serde(with = "buckets")]
    pub latency: Histogram<u64>,
    /// The same from the actual send on; of an open loop only.
    #[serde(with = "buckets::option", default)]
    pub raw_latency: Option<Histogram<u64>>,
    /// As in [`Summary::cycle_mean_s`](crate::Summary::cycle_mean_s).
    pub cycle_mean_s: f64,
    /// CPU time of the generator during the window, s.
    pub generator_cpu_s: f64,
    /// Sends of an open loop that found every slot taken and had to wait.
    pub late: u64,
    /// Sends of an open loop that were not made because too many waited already.
    pub dropped: u64,
    /// Sends of an open loop that were still waiting, or whose time had not been noticed, when the load ended.
    pub skipped: u64,
}

impl Plateau {
    /// Iterations that did not do what they should.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// A quantile (0 to 1) of the latency, ms.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        quantile_ms(&self.latency, quantile)
    }

    /// Number of users by Little's law, rate × time in the loop: a closed loop's `level`, if the generator kept up. Of an open
    /// loop the mean number of requests under way.
    pub fn little_n(&self) -> f64 {
        (self.ok + self.failed()) as f64 / self.seconds * self.cycle_mean_s
    }
}

/// One part of a target that has several, such as a request of a mix: the iterations that ended inside a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    /// What the target calls it.
    pub name: String,
    /// Iterations that did what they should.
    pub ok: u64,
    /// Iterations that did not, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Latencies of the `ok` iterations, µs; of an open loop from the intended send on.
    #[serde(with = "buckets")]
    pub latency: Histogram<u64>,
}

/// What only an open loop has, over all its plateaus.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests a second asked for: the mean over the windows.
    pub asked_rate: f64,
    /// The seed of the distances between sends; `None` when they are all alike.
    pub seed: Option<u64>,
    /// Sends that were made, of those whose time came inside a window.
    pub sent: u64,
    /// Those of them that found every slot taken and had to wait.
    pub late_sends: u64,
    /// Sends that were not made because too many waited already.
    pub dropped: u64,
    /// Sends that were still waiting, or whose time had not been noticed, when the load ended.
    pub skipped: u64,
    /// How long after its time a send was made, or, if every slot was taken, was noticed, 99th percentile, ms: what the
    /// generator itself adds.
    pub send_lag_p99_ms: f64,
    /// That lag is above 1 ms: the generator could not keep the rate, and what it measured says nothing about the system.
    pub generator_limited: bool,
    /// Latencies from the actual send on, µs, beside [`Summary::latency`](crate::Summary::latency).
    #[serde(with = "buckets")]
    pub raw_latency: Histogram<u64>,
}

impl OpenLoop {
    /// A quantile (0 to 1) of the latency from the actual send on, ms.
    pub fn raw_latency_ms(&self, quantile: f64) -> f64 {
        quantile_ms(&self.raw_latency, quantile)
    }
}
