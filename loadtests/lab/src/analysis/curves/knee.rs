//! The knee: where more of `x` begins to bring clearly less.
//!
//! Method: Kneedle (Satopää, Albrecht, Irwin, Raghavan 2011) over the few points that there are. Both axes are scaled to
//! 0 … 1 and the knee is the point that lies furthest above the chord from corner to corner. It must lie above it by more than a
//! tenth, or a straight line with a little noise would have one, and by more than its own interval reaches.

use super::{FEWEST_POINTS, distinct};
use crate::results::Knee;

/// Height above the chord, in scaled units, from which on a bend is one.
const BEND: f64 = 0.1;
/// A curve whose points differ by less than this share is flat.
const FLAT: f64 = 0.15;
const METHOD: &str = "furthest from the chord, both axes scaled (Kneedle)";

/// A point as the method sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Half of the 95 % interval of `y`; 0 where there is none.
    pub(super) half_width: f64,
}

/// The knee of points sorted by `x`, or why there is none.
pub(super) fn find(points: &[Seen]) -> Knee {
    let none = |says: String| Knee { x: None, says };
    if distinct(points.iter().map(|point| point.x)) < FEWEST_POINTS {
        return none("No knee: fewer than 4 distinct points.".to_owned());
    }
    let (first, last) = (points[0], points[points.len() - 1]);
    let ends = |value: fn(&Seen) -> f64| {
        let values = || points.iter().map(value);
        (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        )
    };
    let (low, high) = ends(|point| point.y);
    let noise = points.iter().map(|point| point.half_width).fold(0.0, f64::max);
    if high - low <= (FLAT * high).max(noise) {
        return none(format!(
            "No knee: throughput is flat from {} on, the bend lies there or before.",
            first.x
        ));
    }
    // A curve that falls from its first point on bends where it has fallen most.
    let falls = first.y >= high;
    let above = |point: &Seen| {
        let x = (point.x - first.x) / (last.x - first.x);
        let y = (point.y - low) / (high - low);
        if falls { 1.0 - y - x } else { y - x }
    };
    let furthest = points.iter().copied().max_by(|a, b| above(a).total_cmp(&above(b)));
    let Some(knee) = furthest.filter(|knee| above(knee) > BEND) else {
        return none(format!(
            "No knee: the curve bends nowhere by more than a tenth ({METHOD})."
        ));
    };
    if above(&knee) * (high - low) <= knee.half_width {
        return none(format!(
            "No knee: the bend at {} is smaller than the interval of that point ({METHOD}).",
            knee.x
        ));
    }
    Knee {
        x: Some(knee.x),
        says: format!("Knee at {}: {METHOD}.", knee.x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(curve: impl Fn(f64) -> f64, half_width: f64) -> Vec<Seen> {
        let xs = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];
        let seen = xs.map(|x| Seen {
            x,
            y: curve(x),
            half_width,
        });
        seen.to_vec()
    }

    #[test]
    fn a_curve_that_rises_to_eight_and_stays_there_has_its_knee_at_eight() {
        let knee = find(&points(|x| 10.0 * x.min(8.0), 1.0));
        assert_eq!(knee.x, Some(8.0), "{}", knee.says);
        assert!(knee.says.contains("Kneedle"));
        // The same with a fall behind the top.
        let peaked = find(&points(|x| if x <= 8.0 { 10.0 * x } else { 80.0 - x }, 1.0));
        assert_eq!(peaked.x, Some(8.0), "{}", peaked.says);
    }

    #[test]
    fn a_straight_line_has_none_and_neither_has_a_flat_one() {
        let straight = find(&points(|x| 3.0 * x, 0.5));
        assert_eq!(straight.x, None);
        assert!(straight.says.contains("bends nowhere"), "{}", straight.says);
        let flat = find(&points(|x| 10.0 - x / 40.0, 0.5));
        assert_eq!(flat.x, None);
        assert!(flat.says.contains("flat from 1 on"), "{}", flat.says);
    }

    #[test]
    fn a_bend_smaller_than_its_points_interval_is_none() {
        let noisy = find(&points(|x| 10.0 * x.min(8.0), 60.0));
        assert!(
            noisy.x.is_none() && noisy.says.contains("smaller than the interval"),
            "{}",
            noisy.says
        );
    }

    #[test]
    fn a_falling_curve_bends_where_it_has_fallen_most() {
        let knee = find(&points(|x| 100.0 / x, 0.1));
        assert_eq!(knee.x, Some(6.0), "{}", knee.says);
    }

    #[test]
    fn three_points_are_refused() {
        let three = find(&points(|x| x, 0.0)[..3]);
        assert!(
            three.x.is_none() && three.says.contains("fewer than 4"),
            "{}",
            three.says
        );
    }
}
