//! Deadlocks, as they stand in the stream.

use serde::{Deserialize, Serialize};

/// Deadlocks of a database since the last sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeadlockSample {
    /// As PostgreSQL counts them.
    pub(crate) count: u64,
    /// As it has logged them.
    pub(crate) logged: Vec<Deadlock>,
}

/// Sessions that waited for each other in a circle, until PostgreSQL rolled one of them back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Deadlock {
    /// Relation and place of the row that the victim was about to lock; absent where it was no row.
    pub(crate) relation: Option<String>,
    pub(crate) row: Option<String>,
    /// For how long the victim had waited when PostgreSQL looked, milliseconds.
    pub(crate) waited_ms: Option<f64>,
    /// Each waits for the next one and the last for the first, which is the victim.
    pub(crate) sessions: Vec<DeadlockedSession>,
    /// Foreign keys that refer to the relation, as `TABLE (CONSTRAINT)`: a row that is inserted there locks one here.
    pub(crate) referring: Vec<String>,
    /// Columns of the relation's unique indexes, as `COLUMN (INDEX)`: who changes one locks the row against those.
    pub(crate) keys: Vec<String>,
}

/// One session of a deadlock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeadlockedSession {
    pub(crate) pid: i32,
    /// The lock it asks for, as PostgreSQL says it: `ShareLock on transaction 750`.
    pub(crate) waits_for: String,
    pub(crate) blocked_by: i32,
    pub(crate) statement: String,
}
