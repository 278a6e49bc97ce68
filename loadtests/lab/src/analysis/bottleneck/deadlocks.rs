//! Sessions wait for each other in a circle.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// PostgreSQL looks for a circle after a second (`deadlock_timeout`), and so long all of those in it stand still, with whoever
/// waits behind them. One in ten seconds is a tenth of the time.
const EACH_S: f64 = 10.0;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let count: u64 = scene.runs.iter().filter_map(|run| run.deadlocks()).sum();
    let seconds: f64 = scene
        .runs
        .iter()
        .filter_map(|run| Some(run.load.as_ref()?.seconds))
        .sum();
    (count > 0 && count as f64 * EACH_S >= seconds).then(|| Bottleneck {
        cause: Cause::Deadlocks,
        text: format!(
            "{count} deadlocks in {seconds:.0} s of load: sessions wait for each other, and with them whoever comes after, until \
             PostgreSQL has waited for deadlock_timeout and rolls one of them back."
        ),
    })
}
