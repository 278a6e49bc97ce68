//! What an experiment claims.

use serde::{Deserialize, Serialize};

/// Something the experiment claims, to be judged by what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimSpec {
    pub(crate) text: String,
    pub(crate) metric: Metric,
    /// Two arms: the ratio first ÷ second. One arm: the plain value.
    pub(crate) arms: Vec<String>,
    pub(crate) expect: Expect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<f64>,
    /// Relation that `blamed-row` is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) row: Option<String>,
    /// Id of the published figure to compare to, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<String>,
    /// When it is not reproduced, the run exits with 1.
    #[serde(default)]
    pub(crate) must: bool,
}

/// What a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// Completed iterations a second.
    Throughput,
    /// 95th percentile of the latency, milliseconds.
    P95,
    /// Mean number of sessions that wait for a lock.
    Waiters,
    /// CPU of the load generator, 1.0 is the one core it can use.
    GeneratorCpu,
    /// Users ÷ throughput, the time of a whole iteration by Little's law, ÷ 95th percentile of the timed part. Above 1 the
    /// two cannot be of the same thing: time lies outside the timed part.
    CycleOverP95,
    /// Most messages seen waiting in a queue.
    QueueMax,
    /// Time from the end of the load until the queues are empty, seconds.
    Drain,
    /// Parameters of the PostgreSQL preset that did not take effect.
    NotInForce,
    /// Whether the arm's bottleneck is a row lock on `row`.
    BlamedRow,
}

/// How the measured value has to stand to the claimed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expect {
    AtMost,
    AtLeast,
    /// Within 20 %.
    Near,
    /// `blamed-row` only: that row is blamed.
    Is,
    /// `blamed-row` only: that row is not blamed.
    IsNot,
}
