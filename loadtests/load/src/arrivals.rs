//! When an open loop sends: the intended times, from the schedule alone.
//!
//! With the level as a rate, the schedule has an area under it up to each moment: the number of sends that should have been
//! made. Evenly spaced sends are where that area is 0, 1, 2 …; those of a Poisson process where it is a sum of exponential
//! steps. So plateaus and ramps need no rules of their own.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::schedule::{Schedule, Segment};
use crate::shape::Spacing;

/// A send this close to the end of a segment, in sends, begins the next one: lengths and rates are rounded.
const EDGE: f64 = 1e-6;

/// The intended times of a run, one after another.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The area up to the next one.
    area: f64,
    random: Option<SmallRng>,
}

impl Arrivals {
    pub(crate) fn new(spacing: Spacing) -> Self {
        let random = match spacing {
            Spacing::Constant => None,
            Spacing::Poisson { seed } => Some(SmallRng::seed_from_u64(seed)),
        };
        let mut arrivals = Self { area: 0.0, random };
        // Evenly spaced, the first is sent at once: n seconds at r a second are then n × r sends.
        if arrivals.random.is_some() {
            arrivals.area = arrivals.step();
        }
        arrivals
    }

    /// The next intended time, as a distance from the start; `None` when the schedule has no room for it.
    pub(crate) fn next(&mut self, schedule: &Schedule) -> Option<Duration> {
        let mut before = 0.0;
        for segment in schedule.segments() {
            let area = area(segment);
            if self.area < before + area - EDGE {
                let at = reach(segment, (self.area - before).max(0.0));
                self.area += self.step();
                return Some(at);
            }
            before += area;
        }
        None
    }

    fn step(&mut self) -> f64 {
        match &mut self.random {
            None => 1.0,
            // From (0, 1]: the logarithm of 0 is no time.
            Some(random) => -(1.0 - random.random::<f64>()).ln(),
        }
    }
}

/// The number of sends that a segment asks for.
fn area(segment: &Segment) -> f64 {
    f64::midpoint(segment.from, segment.to) * (segment.end - segment.begin).as_secs_f64()
}

/// When so many of them should have been made.
fn reach(segment: &Segment, sends: f64) -> Duration {
    if sends == 0.0 {
        return segment.begin;
    }
    let length = segment.end - segment.begin;
    let slope = (segment.to - segment.from) / length.as_secs_f64();
    // The root of from × t + slope / 2 × t² = sends that does not cancel when the slope is small.
    let root = (segment.from * segment.from + 2.0 * slope * sends).max(0.0).sqrt();
    let passed = Duration::from_secs_f64(2.0 * sends / (segment.from + root));
    segment.begin + passed.min(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    const S: Duration = Duration::from_secs(1);

    fn times(shape: &Shape, spacing: Spacing) -> Vec<f64> {
        let schedule = Schedule::new(shape);
        let mut arrivals = Arrivals::new(spacing);
        std::iter::from_fn(|| arrivals.next(&schedule))
            .map(|at| at.as_secs_f64())
            .collect()
    }

    #[test]
    fn constant_sends_are_evenly_spaced_without_drift() {
        let times = times(&Shape::open(300.0).duration(1000 * S), Spacing::Constant);
        assert_eq!(times.len(), 300_000);
        for (number, at) in times.iter().enumerate() {
            assert!((at - number as f64 / 300.0).abs() < 1e-6, "{number}: {at}");
        }
    }

    #[test]
    fn a_ramp_sends_as_much_as_the_area_under_it_and_ever_faster() {
        let shape = Shape::open(0.0).ramp(100.0, 10 * S).plateau(100.0).duration(5 * S);
        let times = times(&shape, Spacing::Constant);
        assert_eq!(times.len(), 1000);
        let before = |end: f64| times.iter().filter(|at| **at < end).count();
        // The area after t seconds of the ramp is 5 t².
        for (end, count) in [(2.0, 20), (5.0, 125), (10.0, 500), (12.0, 700)] {
            assert!(before(end).abs_diff(count) <= 1, "{} before {end} s", before(end));
        }
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[1..499].windows(2).all(|pair| pair[1] <= pair[0]), "{gaps:?}");
    }

    #[test]
    fn steps_are_as_far_apart_as_their_rates_say_and_nothing_is_sent_after_the_end() {
        let shape = Shape::open(10.0)
            .duration(2 * S)
            .plateau(50.0)
            .duration(S)
            .ramp(0.0, 2 * S);
        let times = times(&shape, Spacing::Constant);
        assert_eq!(times.len(), 20 + 50 + 50);
        assert!(times.iter().all(|at| *at < 5.0));
    }

    #[test]
    fn poisson_sends_are_as_many_as_the_rate_says_scattered_and_the_same_under_the_same_seed() {
        let shape = Shape::open(200.0).duration(100 * S);
        let seeded = |seed| times(&shape, Spacing::Poisson { seed });
        let one = seeded(1);
        assert_eq!(one, seeded(1));
        assert_ne!(one, seeded(2));
        // 20,000 ± 5 standard deviations.
        assert!((19_300..=20_700).contains(&one.len()), "{}", one.len());
        let gaps: Vec<f64> = one.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The standard deviation of an exponential distribution is its mean.
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.05,
            "{}",
            variance.sqrt() / mean
        );
    }
}
