//! How late a reader outside sees what was acknowledged.

use serde::{Deserialize, Serialize};

/// Milliseconds, over all rounds of an arm. What is beyond the promise has failed the audit, or was declared as a loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Staleness {
    /// What the touch promises to readers: `coarse(1000ms)`.
    pub(crate) promised: String,
    /// Changes that were made one after the other when the load was over, which nobody overwrote; with none the next two are 0.
    pub(crate) changes: u64,
    /// From the 201 of such a change to the last read that did not show it; 0 where the next one did.
    pub(crate) p50_ms: f64,
    pub(crate) max_ms: f64,
    /// Longest time for which a change under load was not seen. Most are overwritten before somebody reads them, so this is
    /// the least that it can have been.
    pub(crate) under_load_max_ms: f64,
    /// Reads of `modifiedAt`, by how much each was older than a tour that had been acknowledged; absent where it does not
    /// follow tours that change nothing.
    pub(crate) modified_at_p50_ms: Option<f64>,
    pub(crate) modified_at_max_ms: Option<f64>,
}
