//! What was looked at before a measurement, as it stands in the stream and in the results.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The checks before a measurement, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CheckId {
    /// Every service has the replicas the arm asks for.
    ReplicaCount,
    /// All replicas of a service run under one configuration.
    ConfigDigest,
    /// HAProxy spreads over all gateways.
    FrontSpread,
    /// The gateways spread over all replicas of each service.
    GatewaySpread,
    /// No queue holds messages of an earlier load.
    QueueEmpty,
    /// The databases that the load writes to are what their snapshots are.
    DatabaseRestored,
    /// Redis holds no key.
    CacheEmpty,
    /// PostgreSQL runs with the parameters of its preset.
    PostgresParameters,
    /// A replica with a limit on its CPU gets no more.
    CpuLimit,
    /// The round trip over every emulated link is the one that was asked for.
    RoundTrip,
    /// The load generator has CPU to spare.
    GeneratorCpu,
}

impl fmt::Display for CheckId {
    /// As in the files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreflightCheck {
    pub(crate) id: CheckId,
    pub(crate) ok: bool,
    /// What was found, with the figures.
    pub(crate) says: String,
}

/// An arm that was not measured because the check it has to be stopped by did stop it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) arm: String,
    pub(crate) changes: Vec<String>,
    pub(crate) id: CheckId,
    pub(crate) says: String,
}

/// The warm-ups of an arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WarmUps {
    /// Length of each, seconds, in order of the rounds.
    pub(crate) seconds: Vec<f64>,
    /// False when the throughput was still changing at the end of one of them.
    pub(crate) steady: bool,
    /// What was seen of those that never got steady.
    pub(crate) says: Vec<String>,
}
