//! Requests queue for a database connection although nobody waits for a lock.

use super::Scene;
use crate::analysis::evidence::Evidence;
use crate::analysis::stats;
use crate::results::{Bottleneck, Cause};

/// Share of the samples in which requests must have been waiting.
const WAITED: f64 = 0.5;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let waited = stats::mean(scene.runs.iter().map(|run| Evidence::pool_waited(run)));
    (waited >= WAITED).then(|| Bottleneck {
        cause: Cause::PoolExhausted,
        text: format!(
            "In {:.0} % of the samples requests waited for a database connection.",
            waited * 100.0
        ),
    })
}
