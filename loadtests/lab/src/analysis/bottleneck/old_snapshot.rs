//! Updates walk past versions of their row that somebody's snapshot keeps from being removed.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// A statement of a service that waits its turn sees those before it begin, a forgotten transaction many more.
const TRANSACTIONS: u64 = 100;
/// So many bytes of old versions cost more to pass than the update itself.
const BYTES: u64 = 512 << 10;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    // Both at once: a large table may have many rows.
    let worst = scene.runs.iter().flat_map(|run| &run.moments);
    let worst = worst.filter(|versions| versions.snapshot_age >= TRANSACTIONS && versions.bytes >= BYTES);
    let worst = worst.max_by_key(|versions| versions.bytes)?;
    Some(Bottleneck {
        cause: Cause::OldSnapshot,
        text: format!(
            "An old snapshot: {} transactions have begun since a session took one that it still uses. {} has grown to {:.1} MB of \
             row versions that could not be removed; whoever looks for a row there passes its old versions.",
            worst.snapshot_age,
            worst.relation,
            worst.bytes as f64 / 1e6
        ),
    })
}
