//! Transactions are rolled back and begun again: the same rows are written several times for one tour.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// Rollbacks for each request that succeeded. From one on, more than half of the work is thrown away.
const EACH: f64 = 1.0;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let rolled_back: u64 = scene.runs.iter().map(|run| run.rolled_back).sum();
    let succeeded: u64 = scene.runs.iter().filter_map(|run| Some(run.load.as_ref()?.ok)).sum();
    (succeeded > 0 && rolled_back as f64 >= EACH * succeeded as f64).then(|| Bottleneck {
        cause: Cause::Rollbacks,
        text: format!(
            "{rolled_back} transactions were rolled back and {succeeded} requests succeeded: each was begun {:.1} times, and \
             all but the last was work in vain.",
            1.0 + rolled_back as f64 / succeeded as f64
        ),
    })
}
