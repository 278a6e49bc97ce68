//! Row versions that nobody needs and that cannot be removed.

use serde::{Deserialize, Serialize};

/// The most that was seen in any round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    /// Transactions that had begun since the oldest snapshot that a session used.
    pub(crate) snapshot_age: u64,
    /// The table that was updated most, and its size in bytes: where old versions are removed, updates use their place again.
    /// PostgreSQL's own count of dead rows says less: it drifts where sessions remove each other's versions.
    pub(crate) relation: String,
    pub(crate) bytes: u64,
}
