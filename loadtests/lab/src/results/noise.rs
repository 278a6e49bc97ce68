//! What says how far the figures of a run can be trusted.

use serde::{Deserialize, Serialize};

/// Two arms that are the same, compared as any two are: what differs between them is noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NoiseFloor {
    pub(crate) arm: String,
    pub(crate) against: String,
    pub(crate) throughput_ratio: f64,
    /// Absent with fewer than 4 rounds.
    pub(crate) throughput_ci95: Option<[f64; 2]>,
    pub(crate) p95_ratio: f64,
    pub(crate) p95_ci95: Option<[f64; 2]>,
}

/// Little's law over the measurements of an arm: in a closed loop, throughput × mean cycle is the number of users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Little {
    /// The measurement furthest off, as a share: 0.03 says 3 % more than the users there were.
    pub(crate) worst: f64,
    /// Measurements that are off by more than 2 %.
    pub(crate) flagged: u32,
    pub(crate) measurements: u32,
    /// Likely cause of the worst one, where it is flagged.
    pub(crate) cause: Option<String>,
}
