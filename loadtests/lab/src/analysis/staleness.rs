//! How late readers saw what was acknowledged, over all rounds of an arm.

use super::evidence::Evidence;
use super::stats;
use crate::results::{Audit, Staleness};

/// `None` where nothing was seen that could be late.
pub(super) fn summarise(runs: &[&Evidence]) -> Option<Staleness> {
    let audits: Vec<&Audit> = runs.iter().filter_map(|run| run.audit.as_ref()).collect();
    let of = |figures: fn(&Audit) -> &Vec<u64>| -> Vec<f64> {
        let all = audits.iter().flat_map(|audit| figures(audit));
        all.map(|ms| *ms as f64).collect()
    };
    let (seen_after, behind) = (of(|audit| &audit.seen_after_ms), of(|audit| &audit.behind_ms));
    if seen_after.is_empty() && behind.is_empty() {
        return None;
    }
    let most = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    let median = |figures: &[f64]| stats::median(figures.iter().copied());
    Some(Staleness {
        promised: audits.first().map(|audit| audit.promised.clone()).unwrap_or_default(),
        changes: seen_after.len() as u64,
        p50_ms: median(&seen_after),
        max_ms: most(&seen_after),
        under_load_max_ms: most(&of(|audit| &audit.stale_ms)),
        modified_at_p50_ms: (!behind.is_empty()).then(|| median(&behind)),
        modified_at_max_ms: (!behind.is_empty()).then(|| most(&behind)),
    })
}
