//! What became of faults.

use serde::{Deserialize, Serialize};

/// A change of the configuration that nothing followed, and the fault that was inflicted at its 201.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastChange {
    pub(crate) kind: String,
    pub(crate) target: String,
    /// From the moment what was hit answered again to the first read after that, seconds.
    pub(crate) answered_s: f64,
    /// From that moment to the first read that showed the change, seconds; `None` if none did when one had to: lost, or never
    /// promised to be seen.
    pub(crate) seen_s: Option<f64>,
}

/// A fault under load, and the recovery from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FaultResult {
    pub(crate) kind: String,
    pub(crate) target: String,
    /// From the moment what it hit answered again to the first acknowledged tour, seconds.
    pub(crate) recovery_s: f64,
    /// Longest time without an acknowledged tour, seconds.
    pub(crate) longest_gap_s: f64,
    /// Tours that were acknowledged from the fault to the recovery.
    pub(crate) acknowledged: u64,
    /// Requests that were repeated meanwhile.
    pub(crate) repeated: u64,
}
