//! The bootstrap-t: the interval of a mean whose distribution the rounds themselves have to tell.
//!
//! The rounds' distances from their mean are drawn with replacement, each with a sign by chance, each resample's mean is
//! studentised by that resample's own spread, and the distance from zero within which 95 % of these lie takes the place of
//! Student's table. The signs say that noise is as likely to hit either arm of a pair; without them one disturbed round of ten
//! makes the plain bootstrap-t far too wide (it held the truth in 98 of 100 cases, and its one-sided form in 93), with them it
//! holds what it promises and is narrower than Student's (`stats.aa_coverage`). A ratio and its inverse have inverse intervals.

use super::{mean, variance};
use crate::random::Random;

/// Resamples: the 95 % point then is the 1,900th in order.
const RESAMPLES: usize = 1999;
/// The same rounds give the same interval, on every machine and whenever a report is rendered again.
const SEED: u64 = 0x0526_0115;
/// A resample whose spread is this much below that of the rounds has drawn the same value over and over.
const NO_SPREAD: f64 = 1e-12;

/// Half the width of the 95 % interval of the mean; 0 when the rounds are all alike.
pub(super) fn half_width(values: &[f64]) -> f64 {
    let spread = variance(values);
    let mut studentised = studentised(values, spread);
    let Some(last) = studentised.len().checked_sub(1) else {
        return 0.0;
    };
    let place = (0.95 * (last + 2) as f64).ceil() as usize - 1;
    let (_, quantile, _) = studentised.select_nth_unstable_by(place.min(last), f64::total_cmp);
    *quantile * (spread / values.len() as f64).sqrt()
}

/// How far the studentised mean of each resample is from zero. A resample without spread has none and is left out: counted
/// as infinitely far, a few rounds that are alike would make the interval infinite.
fn studentised(values: &[f64], spread: f64) -> Vec<f64> {
    let n = values.len() as f64;
    let centre = mean(values.iter().copied());
    let mut random = Random::of(SEED, values.len() as u64);
    let mut drawn = vec![0.0; values.len()];
    (0..RESAMPLES)
        .filter_map(|_| {
            for value in &mut drawn {
                let distance = random.pick(values) - centre;
                *value = if random.one_in(2) { distance } else { -distance };
            }
            let of_drawn = variance(&drawn);
            let off = mean(drawn.iter().copied());
            (of_drawn > spread * NO_SPREAD).then(|| off.abs() / (of_drawn / n).sqrt())
        })
        .collect()
}
