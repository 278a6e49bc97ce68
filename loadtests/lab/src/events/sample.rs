//! What the probes see, as it stands in the stream.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::deadlock::DeadlockSample;

/// What a probe saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "snake_case")]
pub(crate) enum Sample {
    Locks(LockSample),
    Activity(ActivitySample),
    Hot(HotSample),
    Queue(QueueSample),
    Pool(PoolSample),
    Processes(ProcessSample),
    Hold(HoldSample),
    Deadlocks(DeadlockSample),
    Rollbacks(RollbackSample),
}

/// Transactions of a database that were rolled back since the last sample, as PostgreSQL counts them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RollbackSample {
    pub(crate) count: u64,
}

/// The wait graph of PostgreSQL at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockSample {
    /// Sessions blocked by others that hold or await a lock.
    pub(crate) waiters: Vec<Waiter>,
    /// Sessions at the end of the chains: they block and are not blocked.
    pub(crate) roots: Vec<Root>,
    /// What the sample itself took, milliseconds.
    pub(crate) took_ms: f64,
}

/// A session that waits for a lock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiter {
    pub(crate) pid: i32,
    pub(crate) application: String,
    /// Who stands directly before it; 0 is a prepared transaction.
    pub(crate) blocked_by: Vec<i32>,
    /// Session at the end of its chain.
    pub(crate) root: i32,
    /// `tuple`, `transactionid`, `relation`, `advisory` … of the lock it asks for.
    pub(crate) lock_type: String,
    /// Since its statement began, milliseconds: `waitstart` would restart with every lock generation.
    pub(crate) waited_ms: f64,
    pub(crate) statement: String,
}

/// A session that others wait for and that waits for nobody.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Root {
    pub(crate) pid: i32,
    pub(crate) application: String,
    /// `active`, `idle in transaction` …
    pub(crate) state: String,
    /// What it does while others wait: `Client/ClientRead` (a round trip), `IO/WALSync` …, `CPU` when it waits for nothing.
    pub(crate) wait: String,
    pub(crate) transaction_age_ms: f64,
    /// Its last statement; rarely the one that took the lock.
    pub(crate) last_statement: String,
    /// Sessions behind it, over all generations of waiters.
    pub(crate) waiters: u32,
    pub(crate) tuple_waiters: u32,
    pub(crate) transactionid_waiters: u32,
    pub(crate) longest_wait_ms: f64,
    /// Relation the waiters want to change, where it could be found out; of an advisory lock, which has none, that it is one and
    /// its key.
    pub(crate) relation: Option<String>,
    /// The row, by the values of its unique columns: `id=1, tenant_key=BEHNGT`.
    pub(crate) row: Option<String>,
    /// The statement the waiters are stuck in.
    pub(crate) waiting_statement: Option<String>,
}

/// Backends of the audited database by state and wait event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ActivitySample {
    /// `state` → sessions.
    pub(crate) states: BTreeMap<String, u32>,
    /// `type/event` → sessions that are not idle.
    pub(crate) waits: BTreeMap<String, u32>,
    pub(crate) backends: u32,
    /// Transactions that have begun since the oldest snapshot that a session uses; absent where none uses any.
    #[serde(default)]
    pub(crate) snapshot_age: Option<u64>,
}

/// Updates per table since the arm began, and how many of them were heap-only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HotSample {
    /// Table → (updates, heap-only updates).
    pub(crate) tables: BTreeMap<String, HotTable>,
}

/// Counters of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HotTable {
    pub(crate) updates: u64,
    pub(crate) hot_updates: u64,
    pub(crate) inserts: u64,
    pub(crate) dead_rows: u64,
    /// Size of the table without its indexes.
    #[serde(default)]
    pub(crate) bytes: u64,
}

/// A queue of the broker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueueSample {
    /// Queue → messages ready to be delivered.
    pub(crate) ready: BTreeMap<String, u32>,
    /// Queue → consumers.
    pub(crate) consumers: BTreeMap<String, u32>,
}

/// Connection pools, by replica.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PoolSample {
    /// Replica → use of its database pool.
    pub(crate) replicas: BTreeMap<String, PoolUse>,
}

/// Use of one pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PoolUse {
    pub(crate) used: u32,
    pub(crate) idle: u32,
    pub(crate) max: u32,
    /// Requests waiting for a connection.
    pub(crate) pending: u32,
}

/// Processes of the stack; a server's children are counted with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessSample {
    /// Process → what it used.
    pub(crate) processes: BTreeMap<String, ProcessUse>,
    /// Share of the machine's CPU time that was neither idle nor waiting for I/O since the last sample, 0 … 1.
    pub(crate) machine_busy: f64,
    /// Share taken by other guests of the same host, 0 … 1.
    pub(crate) machine_steal: f64,
}

/// What one process and its children used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessUse {
    /// CPU time since the last sample divided by the time passed: 1.0 is one core.
    pub(crate) cpu: f64,
    /// Proportional set size, MiB: shared pages are divided among those who share them.
    pub(crate) pss_mb: f64,
}

/// Holds of the hot row that ended since the last sample, seen on the links to PostgreSQL: each from the reply to the
/// statement that takes the lock to the reply to COMMIT or ROLLBACK.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HoldSample {
    pub(crate) count: u64,
    pub(crate) total_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) max_ms: f64,
    /// Too short to be seen: the row was taken and given back within one packet of the server.
    #[serde(default)]
    pub(crate) unmeasured: u64,
    /// Upper bound in µs and count of every non-empty bucket.
    #[serde(default)]
    pub(crate) buckets: Vec<(u64, u64)>,
}
