//! What an experiment claims.

use std::fmt;

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
    /// How far `near` reaches, as a share: 0.2 is a factor of 1.2 either way, and what holds where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tolerance: Option<f64>,
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

/// How far `near` reaches where the claim does not say.
const TOLERANCE: f64 = 0.2;

impl ClaimSpec {
    /// How far `near` reaches, as a share.
    pub(crate) fn tolerance(&self) -> f64 {
        self.tolerance.unwrap_or(TOLERANCE)
    }
}

/// What a claim or a published figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Metric {
    /// Completed iterations a second.
    Throughput,
    /// 95th percentile of the latency.
    P95,
    /// 99th percentile of the latency.
    P99,
    /// Longest latency.
    Max,
    /// Mean number of sessions that wait for a lock.
    Waiters,
    /// Most sessions seen waiting for a lock at once.
    WaitersMax,
    /// Lock samples in which somebody waited, of all.
    SamplesWithWaiters,
    /// Waiters on `tuple`, of those on `tuple` and on `transactionid`.
    TupleShare,
    /// Heap-only updates of the table that was updated most, of all its updates.
    HotRatio,
    /// CPU of the load generator, 1.0 is the one core it can use.
    GeneratorCpu,
    /// Users ÷ throughput, the time of a whole iteration by Little's law, ÷ 95th percentile of the timed part. Above 1 the
    /// two cannot be of the same thing: time lies outside the timed part.
    CycleOverP95,
    /// Mean time for which the hot row was held, from the link.
    Hold,
    /// Throughput as a share of what the hold time lets through: 1 when the row is never free.
    OfCeiling,
    /// Most messages seen waiting in a queue.
    QueueMax,
    /// Messages of one measurement, warm-up included.
    Messages,
    /// Time from the end of the load until the queues are empty.
    Drain,
    /// Longest time from the 201 of a change to the last read that did not show it, of changes that nobody overwrote.
    Staleness,
    /// Acknowledged tours of one measurement whose message a fault cost as declared.
    LostMessages,
    /// Parameters of the PostgreSQL preset that did not take effect.
    NotInForce,
    /// Whether the arm's bottleneck is a row lock on `row`.
    BlamedRow,
}

impl Metric {
    /// What a plain value is counted in; a ratio of two arms has no unit.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "1/s",
            Self::P95 | Self::P99 | Self::Max | Self::Hold | Self::Staleness => "ms",
            Self::Waiters | Self::WaitersMax => "sessions",
            Self::SamplesWithWaiters | Self::TupleShare | Self::HotRatio | Self::OfCeiling => "share",
            Self::GeneratorCpu => "cores",
            Self::CycleOverP95 => "ratio",
            Self::QueueMax | Self::Messages | Self::LostMessages => "messages",
            Self::Drain => "s",
            Self::NotInForce => "parameters",
            Self::BlamedRow => "rows",
        }
    }

    /// Whether a plain value is itself one quantity ÷ another: it is then averaged as ratios of arms are, twice as much being
    /// as far away as half as much.
    pub(crate) fn is_quotient(self) -> bool {
        matches!(self, Self::CycleOverP95 | Self::OfCeiling)
    }
}

impl fmt::Display for Metric {
    /// As in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How the measured value has to stand to the claimed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expect {
    AtMost,
    AtLeast,
    /// Within the claim's tolerance.
    Near,
    /// `blamed-row` only: that row is blamed.
    Is,
    /// `blamed-row` only: that row is not blamed.
    IsNot,
}
