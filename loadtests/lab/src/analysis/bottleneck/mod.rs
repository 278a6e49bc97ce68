//! What limits an arm: one rule a file, asked in order. A rule that is earlier in the list explains away later ones:
//! sessions that wait for a row also fill the pool, and those that wait in a circle wait for a row.

mod cpu;
mod deadlocks;
mod generator;
mod old_snapshot;
mod pool;
mod queue;
mod rollbacks;
mod row_lock;

use super::evidence::Evidence;
use crate::results::{Bottleneck, Cause, Locks};

pub(super) use generator::BUSY as GENERATOR_BUSY;

/// What the rules look at.
pub(super) struct Scene<'a> {
    pub(super) runs: &'a [&'a Evidence],
    pub(super) locks: &'a Locks,
    /// CPU of the generator's thread, 1.0 is a core.
    pub(super) generator_cpu: f64,
    pub(super) little_n: f64,
    pub(super) users: usize,
}

type Rule = fn(&Scene<'_>) -> Option<Bottleneck>;

const RULES: [Rule; 8] = [
    generator::rule,
    deadlocks::rule,
    old_snapshot::rule,
    rollbacks::rule,
    row_lock::rule,
    cpu::rule,
    pool::rule,
    queue::rule,
];

/// The first rule that fits.
pub(super) fn find(scene: &Scene<'_>) -> Bottleneck {
    RULES.iter().find_map(|rule| rule(scene)).unwrap_or_else(|| Bottleneck {
        cause: Cause::NoneFound,
        text: "Nothing that was sampled stands out: the time goes into the request's own work and round trips."
            .to_owned(),
    })
}
