//! The bootstrap-t: the interval of a mean whose distribution the rounds themselves have to tell.
//!
//! Rounds are drawn with replacement, each resample's mean is studentised by that resample's own spread, and the share of
//! studentised means that lies within a distance of zero takes the place of Student's table. The distance is the same to
//! both sides (the symmetric variant): with ten rounds each tail by itself is too poorly known, and a ratio and its inverse
//! must come to inverse intervals.

use super::{mean, student, variance};
use crate::random::Random;

/// Resamples: the 95 % point then is the 1,900th in order.
const RESAMPLES: usize = 1999;
/// The same rounds give the same interval, on every machine and whenever a report is rendered again.
const SEED: u64 = 0x0526_0115;
/// A resample whose spread is this much below that of the rounds has drawn the same value over and over.
const NO_SPREAD: f64 = 1e-12;

/// Half the width of the 95 % interval of the mean; 0 when the rounds are all alike.
pub(super) fn half_width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let centre = mean(values.iter().copied());
    let spread = variance(values);
    if spread <= 0.0 {
        return 0.0;
    }
    let mut distances = distances(values, centre, spread);
    let quantile = if distances.len() < RESAMPLES / 2 {
        // More than half of the resamples have no spread: nearly all rounds are alike, and one is not. What is left tells
        // the shape of nothing.
        student::two_sided(0.95, n - 1.0)
    } else {
        let last = distances.len() - 1;
        let place = (0.95 * (distances.len() + 1) as f64).ceil() as usize - 1;
        let (_, quantile, _) = distances.select_nth_unstable_by(place.min(last), f64::total_cmp);
        *quantile
    };
    quantile * (spread / n).sqrt()
}

/// How far the studentised mean of each resample is from zero. A resample without spread has no studentised mean and is
/// left out: counted as infinitely far, a few rounds that are alike would make the interval infinite.
fn distances(values: &[f64], centre: f64, spread: f64) -> Vec<f64> {
    let n = values.len() as f64;
    let mut random = Random::of(SEED, values.len() as u64);
    let mut drawn = vec![0.0; values.len()];
    (0..RESAMPLES)
        .filter_map(|_| {
            for value in &mut drawn {
                *value = random.pick(values);
            }
            let of_drawn = variance(&drawn);
            let off = mean(drawn.iter().copied()) - centre;
            (of_drawn > spread * NO_SPREAD).then(|| off.abs() / (of_drawn / n).sqrt())
        })
        .collect()
}
