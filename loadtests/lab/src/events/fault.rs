//! What the stream says of a fault.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The course of a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(crate) enum FaultState {
    /// It is felt from now on.
    Inflicted {
        /// The processes it hit, by name, with the pid they had.
        hit: BTreeMap<String, u32>,
    },
    /// What it hit answers again.
    Healed {
        /// When what it hit could not write down what it held in memory: the time in which that was, milliseconds since the
        /// Unix epoch.
        crashed_ms: Option<[u64; 2]>,
    },
    /// A tour was acknowledged after that.
    Recovered {
        /// Seconds since what it hit answered again.
        after_s: f64,
        /// Tours that were acknowledged meanwhile.
        acknowledged: u64,
        /// Requests that were repeated meanwhile.
        repeated: u64,
        /// Longest time without an acknowledgement, seconds.
        longest_gap_s: f64,
    },
    /// It was inflicted at the 201 of a change that nothing follows, and a reader is answered again.
    Outlived {
        /// Seconds from when what it hit answered again to the first read after that.
        answered_s: f64,
        /// Seconds from then to the first read that showed the change; `None` if none did when one had to.
        seen_s: Option<f64>,
    },
    /// It could not be inflicted, did not heal, or was not recovered from.
    Failed { reason: String },
}
