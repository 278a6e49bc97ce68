//! What the algorithms have in common: a script, and what it answers.

use std::time::Duration;

use chassis::cache::Script;
use serde::Serialize;

use super::{fixed_window::FixedWindow, gcra::Gcra};

/// A way to count requests: one file each, and its name here.
pub(crate) trait Algorithm: Send + Sync {
    /// Part of the keys in Redis, and the name of the policy that clients see.
    fn name(&self) -> &'static str;

    /// Takes the subject's key as `KEYS[1]` and the requests a minute as `ARGV[1]`; answers with an [`Answer`].
    fn script(&self) -> &'static Script;
}

/// Whether the request is allowed (1 or 0), how many more would be, milliseconds until the quota is whole again,
/// milliseconds until a refused request would be allowed.
pub(super) type Answer = (u8, u64, u64, u64);

/// An [`Answer`] in words.
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) remaining: u64,
    pub(super) reset: Duration,
    pub(super) retry_after: Duration,
}

impl Verdict {
    pub(super) fn of((allowed, remaining, reset_ms, retry_after_ms): Answer) -> Self {
        Self {
            allowed: allowed == 1,
            remaining,
            reset: Duration::from_millis(reset_ms),
            retry_after: Duration::from_millis(retry_after_ms),
        }
    }
}

/// The algorithms by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmName {
    /// A counter a minute.
    FixedWindow,
    /// Evenly spaced, after a burst of a minute's worth.
    Gcra,
}

impl AlgorithmName {
    pub(super) fn algorithm(self) -> &'static dyn Algorithm {
        match self {
            Self::FixedWindow => &FixedWindow,
            Self::Gcra => &Gcra,
        }
    }
}
