//! The machine has no CPU left.

use super::Scene;
use crate::analysis::stats;
use crate::results::{Bottleneck, Cause};

/// Time taken by other guests of the host counts as well: it is not there to be used.
const BUSY: f64 = 0.9;

pub(super) fn rule(scene: &Scene<'_>) -> Option<Bottleneck> {
    let samples = || scene.runs.iter().flat_map(|run| &run.processes);
    let busy = stats::mean(samples().map(|sample| sample.machine_busy));
    let steal = stats::mean(samples().map(|sample| sample.machine_steal));
    (busy + steal >= BUSY).then(|| Bottleneck {
        cause: Cause::CpuSaturated,
        text: format!(
            "The machine's CPUs were {:.0} % busy, and {:.0} % of their time went to other guests of the host.",
            busy * 100.0,
            steal * 100.0
        ),
    })
}
