//! Messages come in faster than they are consumed.

use super::Scene;
use crate::results::{Bottleneck, Cause};

/// Growth over one measurement that is more than the ebb and flow of a healthy queue.
const GROWTH: u32 = 100;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let growth = scene.runs.iter().filter_map(|run| run.queue_ends());
    let growth = growth.map(|(first, last)| last.saturating_sub(first)).max()?;
    (growth >= GROWTH).then(|| Bottleneck {
        cause: Cause::QueueGrows,
        text: format!("The broker's queue grew by {growth} messages in one measurement: its consumer is too slow."),
    })
}
