//! `results.json`: what a run came to, documented and versioned, for people and for other programs.
//!
//! ```json
//! {"schema":1,"experiment":"row-lock-demo","environment":{…},
//!  "arms":[{"name":"1 replica","changes":["tour-data=1"],"throughput":{"mean":11.2,…},
//!           "latency_ms":{"p50":…,"p95":…,"p99":…,"max":…},"errors":{…},"locks":{…},
//!           "rtt_ms":1.0,"little_n":9.98,"audit":{…}}],
//!  "claims":[{"text":"…","published":…,"measured":…,"verdict":"reproduced"}]}
//! ```
//! A field is added without raising `schema`; one that changes its meaning or goes raises it.

mod curve;
mod deadlocks;
mod faults;
mod measure;
mod noise;
mod open;
mod preflight;
mod staleness;
mod versions;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use curve::{Curve, CurvePoint, Knee, Scalability, UslFit};
pub(crate) use deadlocks::{DeadlockKind, DeadlockPlace, Deadlocks};
pub(crate) use faults::{FaultResult, LastChange};
pub(crate) use noise::{Little, NoiseFloor};
pub(crate) use open::Open;
pub(crate) use preflight::{CheckId, PreflightCheck, Refused, WarmUps};
pub(crate) use staleness::Staleness;
pub(crate) use versions::Versions;

/// Version of the format.
pub(crate) const SCHEMA: u32 = 1;

/// Name of the results in a result folder.
pub(crate) const RESULTS_FILE: &str = "results.json";

/// A measured round trip that is off by more than this share is not the distance that was asked for.
pub(crate) const RTT_TOLERANCE: f64 = 0.10;

/// The whole of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) experiment: String,
    pub(crate) question: String,
    /// The published story that the figures of the claims are from.
    #[serde(default)]
    pub(crate) published: Option<String>,
    pub(crate) environment: Environment,
    pub(crate) rounds: u32,
    pub(crate) users: usize,
    pub(crate) duration_s: f64,
    pub(crate) arms: Vec<Arm>,
    /// Arms that were not measured, as they have to be: a preflight check that the experiment expects stopped them.
    #[serde(default)]
    pub(crate) refused: Vec<Refused>,
    /// Arms against the first one, from rounds that hold both.
    pub(crate) comparisons: Vec<Comparison>,
    /// What two arms that are the same came to, where the experiment asks for it.
    #[serde(default)]
    pub(crate) noise_floor: Option<NoiseFloor>,
    #[serde(default)]
    pub(crate) curves: Vec<Curve>,
    pub(crate) claims: Vec<Claim>,
    /// False when a measurement failed or the run was cut off.
    pub(crate) completed: bool,
    pub(crate) failures: Vec<String>,
}

/// The machine and the servers a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) cpus: usize,
    pub(crate) cpu_model: String,
    pub(crate) memory_mb: u64,
    pub(crate) kernel: String,
    /// Server → version.
    pub(crate) servers: BTreeMap<String, String>,
    /// Version of Rowlock and the commit it was built from, where known.
    pub(crate) rowlock: String,
    /// Digest of the programs that were run; empty in results from before it was kept.
    #[serde(default)]
    pub(crate) programs: String,
    /// RFC 3339.
    pub(crate) started_at: String,
}

/// One arm over all its rounds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) changes: Vec<String>,
    /// What its alternatives give up by their own word, as `AXIS NAME: …`; the published ones are left out.
    #[serde(default)]
    pub(crate) gives_up: Vec<String>,
    /// Virtual users.
    pub(crate) users: usize,
    /// Parameters of the PostgreSQL preset that did not take effect.
    pub(crate) not_in_force: Vec<String>,
    pub(crate) throughput: Throughput,
    /// Of the merged histograms; percentiles are never averaged.
    pub(crate) latency_ms: Latency,
    /// 95th percentile of each round, milliseconds, in order of the rounds: for intervals, never to be averaged.
    #[serde(default)]
    pub(crate) p95_rounds_ms: Vec<f64>,
    /// Kind of error → requests, over all rounds.
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) requests: u64,
    pub(crate) locks: Locks,
    /// Emulated round trip that was asked for; 0 where there is none.
    pub(crate) rtt_asked_ms: f64,
    /// Median of the measured round trips to PostgreSQL.
    pub(crate) rtt_ms: f64,
    /// Throughput × mean cycle: in a closed loop this is the number of users, or something is wrong (Little's law).
    pub(crate) little_n: f64,
    /// The same, measurement by measurement; absent in results from before it was kept.
    #[serde(default)]
    pub(crate) little: Option<Little>,
    /// Absent in results from before they were counted.
    #[serde(default)]
    pub(crate) deadlocks: Option<Deadlocks>,
    /// Absent where nothing was sampled.
    #[serde(default)]
    pub(crate) versions: Option<Versions>,
    /// How long the hot row was held; absent where no hold was seen.
    #[serde(default)]
    pub(crate) hold: Option<Hold>,
    /// Absent for a closed loop.
    #[serde(default)]
    pub(crate) open: Option<Open>,
    pub(crate) generator_cpu: f64,
    /// Process → mean CPU (1.0 = one core) and highest PSS.
    pub(crate) processes: BTreeMap<String, ProcessMean>,
    /// Most messages seen waiting in the queue.
    pub(crate) queue_max: u32,
    /// Longest time from the end of a load until the queues were empty, seconds.
    pub(crate) drain_s: f64,
    /// Share of heap-only updates of the hot table, 0 … 1; absent without updates.
    pub(crate) hot_ratio: Option<f64>,
    /// Highest share of a replica's pool in use, 0 … 1.
    pub(crate) pool_use_max: f64,
    /// Checks before the measurements; one has passed when it has in every round.
    #[serde(default)]
    pub(crate) preflight: Vec<PreflightCheck>,
    /// Absent in results from before warm-ups were detected.
    #[serde(default)]
    pub(crate) warm_up: Option<WarmUps>,
    pub(crate) audit: Audit,
    /// Absent where no reader is promised to see anything, and in results from before it was measured.
    #[serde(default)]
    pub(crate) staleness: Option<Staleness>,
    /// Faults that were recovered from, in the order of rounds and of the experiment.
    #[serde(default)]
    pub(crate) faults: Vec<FaultResult>,
    /// Faults at the 201 of a change that nothing followed, in the order of rounds and of the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) last_changes: Vec<LastChange>,
    pub(crate) bottleneck: Bottleneck,
}

/// Holds of the hot row, seen on the link to PostgreSQL: from the reply to the statement that takes the lock to the reply to
/// COMMIT or ROLLBACK. Nothing here is derived from the throughput, so that it can be held against it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) count: u64,
    pub(crate) mean_ms: f64,
    /// Of the merged samples.
    pub(crate) p95_ms: f64,
    pub(crate) max_ms: f64,
    /// Holds too short to be seen; where they are many, the mean is of the longer ones.
    #[serde(default)]
    pub(crate) unmeasured: u64,
    /// Rows that were hot: one a tenant that the load worked for.
    #[serde(default = "one")]
    pub(crate) rows: usize,
    /// Rows / mean hold: transactions a second that they let through at most, however many replicas ask for them.
    pub(crate) ceiling_per_s: f64,
}

/// Of results from before there could be more.
fn one() -> usize {
    1
}

/// Completed iterations a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Throughput {
    pub(crate) mean: f64,
    /// One value a round, in order of the rounds.
    pub(crate) rounds: Vec<f64>,
    /// 95 % confidence interval of the mean; absent with fewer than 4 rounds.
    pub(crate) ci95: Option<[f64; 2]>,
}

/// Milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
}

/// Lock waits over all samples of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Locks {
    pub(crate) samples: u32,
    /// Samples in which somebody waited.
    pub(crate) samples_with_waiters: u32,
    pub(crate) waiters_mean: f64,
    pub(crate) waiters_max: u32,
    /// Sums over all samples.
    pub(crate) tuple_waiters: u32,
    pub(crate) transactionid_waiters: u32,
    /// Rows that were waited for, most waiters first.
    pub(crate) rows: Vec<LockedRow>,
    /// What the holder was doing while others waited: `Client/ClientRead` → share 0 … 1.
    pub(crate) holder_waits: BTreeMap<String, f64>,
}

/// One row that sessions waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockedRow {
    pub(crate) relation: String,
    /// Values of the row's unique columns; absent where it could not be found out.
    pub(crate) row: Option<String>,
    /// Share of all waiters seen, 0 … 1.
    pub(crate) share: f64,
    pub(crate) statement: String,
}

/// Use of one process over an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessMean {
    pub(crate) cpu_mean: f64,
    pub(crate) pss_mb_max: f64,
}

/// What the probes say limits an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bottleneck {
    pub(crate) cause: Cause,
    /// One sentence with the figures it rests on.
    pub(crate) text: String,
}

/// Cause ids: one vocabulary for rules, pitfalls and faults, so that a diagnosis can be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// Sessions wait for each other, until one of them is rolled back.
    Deadlocks,
    /// Row versions that a snapshot keeps have to be passed by every update.
    OldSnapshot,
    /// Transactions are rolled back and begun again more often than requests succeed.
    Rollbacks,
    /// Sessions queue for one row's lock.
    RowLock,
    /// The service's database pool is the queue.
    PoolExhausted,
    /// The machine has no CPU left.
    CpuSaturated,
    /// The broker's queue grows.
    QueueGrows,
    /// The load generator is the limit.
    GeneratorLimited,
    /// Nothing that the probes see stands out.
    NoneFound,
}

/// The invariants of one measurement, or of all of an arm together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Audit {
    pub(crate) passed: bool,
    pub(crate) checks: Vec<AuditCheck>,
    pub(crate) acknowledged: u64,
    /// Tenants that they are of; 0 in results from before it was counted.
    #[serde(default)]
    pub(crate) tenants: usize,
    /// Messages in the audit queue.
    pub(crate) delivered: u64,
    /// Messages beyond the first of the same tour.
    pub(crate) duplicates: u64,
    /// What the PostgreSQL preset declares that a crash of the server may cost: tours acknowledged in so many milliseconds
    /// before it. Zero for a preset that loses nothing.
    #[serde(default)]
    pub(crate) may_lose_ms: u64,
    /// Acknowledged tours that a crash cost within that declaration; what is missing beyond it violates an invariant.
    #[serde(default)]
    pub(crate) declared_losses: u64,
    /// Acknowledged tours whose message a fault cost where the announcement declares that it may.
    #[serde(default)]
    pub(crate) lost_messages: u64,
    /// Reads that showed older values of the configuration than promised, where the touch declares that it may lose changes.
    #[serde(default)]
    pub(crate) older_reads: u64,
    /// Reads under load that had to show something that was written after the last fault; nought where nothing is promised, and
    /// where requests without an answer leave no read that is owed anything.
    #[serde(default)]
    pub(crate) judged_reads: u64,
    /// What the touch promises to readers: `coarse(1000ms)`.
    #[serde(default)]
    pub(crate) promised: String,
    /// For how long each change of the configuration was at least not seen by a reader, milliseconds, in no order.
    #[serde(default)]
    pub(crate) stale_ms: Vec<u64>,
    /// The same of the changes that were made one after the other when the load was over, which nobody overwrote. This and the
    /// next stand in the stream alone; of a whole arm they are in its [`Staleness`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) seen_after_ms: Vec<u64>,
    /// For each read: by how much `modifiedAt` was older than a tour that had been acknowledged, milliseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) behind_ms: Vec<u64>,
}

/// One invariant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AuditCheck {
    pub(crate) name: String,
    /// What the invariant says.
    pub(crate) says: String,
    pub(crate) passed: bool,
    pub(crate) violations: u64,
    /// At most five, as `subject: detail`.
    pub(crate) examples: Vec<String>,
}

/// One arm against the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    pub(crate) arm: String,
    pub(crate) against: String,
    /// Throughput of `arm` ÷ throughput of `against`: geometric mean over rounds.
    pub(crate) throughput_ratio: f64,
    /// On paired log-ratios (Student-t, bootstrap-t from 8 rounds on); absent with fewer than 4 rounds.
    pub(crate) ci95: Option<[f64; 2]>,
    /// Of the merged histograms.
    pub(crate) p95_ratio: f64,
    /// Of the rounds' 95th percentiles in pairs, geometric mean, with its interval.
    #[serde(default)]
    pub(crate) p95_paired_ratio: Option<f64>,
    #[serde(default)]
    pub(crate) p95_ci95: Option<[f64; 2]>,
    /// Whether the ratio is further from 1 than that of two arms which are the same; absent without a noise floor.
    #[serde(default)]
    pub(crate) throughput_beyond_noise: Option<bool>,
    #[serde(default)]
    pub(crate) p95_beyond_noise: Option<bool>,
}

/// A statement of the experiment, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) text: String,
    /// Id of the published figure it is about.
    #[serde(default)]
    pub(crate) figure: Option<String>,
    /// As published, where there is a figure.
    pub(crate) published: Option<f64>,
    pub(crate) measured: Option<f64>,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) verdict: Verdict,
    /// A failed claim of this kind makes the run exit with 1.
    pub(crate) must: bool,
    /// Why the verdict is what it is.
    pub(crate) note: String,
}

/// How a claim ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Reproduced,
    NotReproduced,
    /// The noise is larger than what had to be told apart, or fewer than 4 rounds.
    Inconclusive,
    /// The published figure contradicts itself.
    CannotHold,
}
