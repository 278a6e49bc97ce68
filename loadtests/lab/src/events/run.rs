//! How a run is made, for whoever continues it.

use serde::{Deserialize, Serialize};

use crate::experiment::Order;

/// What a run was told beyond its experiment, and what it left to chance. Everything that was not recorded by an older
/// version has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Manner {
    pub(crate) order: Order,
    /// Of a random order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// SHA-256 of the experiment's copy in the result folder, hexadecimal; empty in streams of older versions.
    pub(crate) experiment_digest: String,
    /// The lock table was looked at often.
    pub(crate) fast_locks: bool,
    /// Each load ended when its last fault was recovered from.
    pub(crate) until_recovered: bool,
}
