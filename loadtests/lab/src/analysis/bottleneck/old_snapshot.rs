//! Updates walk past versions of their row that somebody's snapshot keeps from being removed.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// A statement of a service that waits its turn sees those before it begin, a forgotten transaction many more.
const TRANSACTIONS: u64 = 200;
/// So many versions to pass cost more than the update itself.
const VERSIONS: u64 = 1000;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    // Both at once: dead rows alone are what a vacuum has not come to yet.
    let worst = scene.runs.iter().filter_map(|run| run.versions.as_ref());
    let worst = worst.filter(|versions| versions.snapshot_age >= TRANSACTIONS && versions.dead_rows >= VERSIONS);
    let worst = worst.max_by_key(|versions| versions.dead_rows)?;
    Some(Bottleneck {
        cause: Cause::OldSnapshot,
        text: format!(
            "An old snapshot: {} transactions have begun since a session took one that it still uses, and up to {} dead rows of \
             {} could not be removed; whoever looks for a row there passes its old versions.",
            worst.snapshot_age, worst.dead_rows, worst.relation
        ),
    })
}
