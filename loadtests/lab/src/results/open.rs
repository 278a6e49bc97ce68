//! What only an arm in an open loop has.

use serde::{Deserialize, Serialize};

use super::Latency;

/// Sends at a rate, over all rounds. The arm's own latencies are from the intended send on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// Requests a second asked for.
    pub(crate) asked_rate: f64,
    /// Sends that were made in the measured part.
    pub(crate) sent: u64,
    /// Those of them that found every slot taken and had to wait.
    pub(crate) late: u64,
    /// Sends that were not made because too many waited already.
    pub(crate) dropped: u64,
    /// Sends that were still waiting when the load ended.
    pub(crate) skipped: u64,
    /// The worst round's 99th percentile of how long after its time a send was made that found a slot free, milliseconds.
    pub(crate) send_lag_p99_ms: f64,
    /// In some round the generator could not keep the rate: the arm says nothing about the system.
    pub(crate) generator_limited: bool,
    /// From the actual send on, which hides the time that a send had to wait.
    pub(crate) raw_latency_ms: Latency,
}
