//! Deadlocks of an arm: how many, and of which kinds.

use serde::{Deserialize, Serialize};

/// Deadlocks over the measured parts of all rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Deadlocks {
    /// As PostgreSQL counts them, or as it has logged them where those are more: it counts late.
    pub(crate) count: u64,
    /// Those that were logged, by kind, the most frequent first.
    pub(crate) kinds: Vec<DeadlockKind>,
}

/// Deadlocks of the same statements over the same locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeadlockKind {
    pub(crate) count: u64,
    /// The longest that a victim had waited before PostgreSQL looked, milliseconds.
    pub(crate) waited_ms: Option<f64>,
    /// Each waits for the next one and the last for the first, which is rolled back.
    pub(crate) circle: Vec<DeadlockPlace>,
    /// How it comes about, as far as log and catalogue say.
    pub(crate) why: String,
    /// What to do against it.
    pub(crate) remedy: String,
}

/// One session of the circle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeadlockPlace {
    pub(crate) statement: String,
    /// The lock it asks for, without the numbers that differ each time.
    pub(crate) waits_for: String,
}
