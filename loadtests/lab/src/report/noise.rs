//! The noise floor in words.

use super::table::times;
use crate::results::NoiseFloor;

/// What two arms that are the same differ by, and what follows for the others.
pub(super) fn sentence(floor: &NoiseFloor) -> String {
    let known = floor.throughput_ci95.is_some();
    let follows = if known {
        "A ratio no further from 1 than the further end of these intervals is noise as likely as effect, and a claim that would \
         have to tell apart less than that is inconclusive."
    } else {
        "With fewer than 4 rounds there is no interval, and no floor to hold the other arms against."
    };
    format!(
        "“{}” is “{}” once more. Between the two, throughput differs by {} and the 95th percentile by {}. {follows}",
        floor.arm,
        floor.against,
        times(floor.throughput_ratio, floor.throughput_ci95),
        times(floor.p95_ratio, floor.p95_ci95),
    )
}
