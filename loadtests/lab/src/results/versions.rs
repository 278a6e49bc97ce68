//! Row versions that nobody needs and that cannot be removed.

use serde::{Deserialize, Serialize};

/// The most that was seen in any round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    /// Transactions that had begun since the oldest snapshot that a session used.
    pub(crate) snapshot_age: u64,
    /// Dead rows of one table, and which.
    pub(crate) dead_rows: u64,
    pub(crate) relation: String,
}
