//! Sessions queue for one row.

use super::Scene;
use crate::analysis::evidence::Evidence;
use crate::analysis::stats;
use crate::results::{Bottleneck, Cause};

/// Share of the busy sessions that must be waiting: half of them is a queue, a few are ordinary contention.
const WAITING: f64 = 0.5;
/// Share of the waiters that must be behind the same row.
const SAME_ROW: f64 = 0.5;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let locks = scene.locks;
    let row = locks.rows.first()?;
    let busy = stats::mean(scene.runs.iter().map(|run| Evidence::busy_sessions(run)));
    if locks.waiters_mean < 1.0 || locks.waiters_mean < WAITING * busy || row.share < SAME_ROW {
        return None;
    }
    let (one, what) = match &row.row {
        Some(named) => ("row", format!("lock on a row of {} ({named})", row.relation)),
        // It stands in front of the row.
        None if row.relation.starts_with("advisory lock") => ("lock", row.relation.clone()),
        None => ("row", format!("lock on a row of {}", row.relation)),
    };
    let holder = locks.holder_waits.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let holder = holder.map(|(wait, share)| match wait.as_str() {
        "Client/ClientRead" => {
            format!("; in {:.0} % of the samples the holder waited for its client's next statement: the lock is held across round trips", share * 100.0)
        }
        "CPU" => format!("; in {:.0} % of the samples the holder was working", share * 100.0),
        other => format!("; in {:.0} % of the samples the holder waited on {other}", share * 100.0),
    });
    Some(Bottleneck {
        cause: Cause::RowLock,
        text: format!(
            "One {one}: on average {:.1} of {busy:.1} busy sessions wait for the {what}{}.",
            locks.waiters_mean,
            holder.unwrap_or_default(),
        ),
    })
}
