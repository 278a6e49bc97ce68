//! When a load is warm: found out by its throughput second by second, and not assumed.
//!
//! The warm-up of the experiment is the least. From then on the last seconds are cut in two halves of equal length; the load
//! is steady when the halves differ by no more than a tenth, or by no more than two counts of so few requests differ by
//! chance. A bound ends the waiting; what is measured then is marked as not having been steady.

use std::collections::VecDeque;
use std::time::Duration;

use load::Second;

use crate::experiment::Experiment;

/// Halves that differ by no more than this share are alike.
const ALIKE: f64 = 0.10;
/// Counts of independent events that differ by more than so many standard deviations differ for a reason.
const DEVIATIONS: f64 = 2.0;
/// The longest half, seconds: a longer one would see only slow changes later.
const HALF_MAX: usize = 3;
/// What a warm-up may take beyond three times the least.
const BEYOND: Duration = Duration::from_secs(10);
/// A second shorter than this was cut off at the end of a phase.
const WHOLE_S: f64 = 0.95;

/// The warm-up of one measurement.
#[derive(Debug)]
pub(super) struct WarmUp {
    least: Duration,
    /// `None` where it is as long as the experiment says.
    most: Option<Duration>,
    /// Seconds in each half.
    half: usize,
    /// Requests that succeeded in each of the last seconds.
    counts: VecDeque<u64>,
}

/// How a warm-up ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) steady: bool,
    pub(super) says: String,
}

impl WarmUp {
    /// Without a warm-up there is nothing to find out. With faults it is as long as the experiment says: they are timed from
    /// the start of the load.
    pub(super) fn of(experiment: &Experiment) -> Self {
        let least = experiment.warm_up;
        let fixed = least.is_zero() || !experiment.faults.is_empty();
        Self {
            least,
            most: (!fixed).then(|| least * 3 + BEYOND),
            half: (least.as_secs_f64() / 2.0).round().clamp(1.0, HALF_MAX as f64) as usize,
            counts: VecDeque::new(),
        }
    }

    /// The bound, where the end is found out.
    pub(super) fn most(&self) -> Option<Duration> {
        self.most
    }

    /// When it is over in any case.
    pub(super) fn bound(&self) -> Duration {
        self.most.unwrap_or(self.least)
    }

    /// Looks at one more second of load; gives how it ended once the load is steady.
    pub(super) fn see(&mut self, second: &Second) -> Option<Ended> {
        self.most?;
        if !second.warm_up || second.length_s < WHOLE_S {
            return None;
        }
        self.counts.push_back(second.ok);
        if self.counts.len() > 2 * self.half {
            self.counts.pop_front();
        }
        let passed = second.start_s + second.length_s;
        let long_enough = passed + 0.05 >= self.least.as_secs_f64() && self.counts.len() == 2 * self.half;
        (long_enough && self.is_steady()).then(|| Ended {
            steady: true,
            says: format!(
                "steady after {passed:.0} s: {} requests in the last seconds",
                self.last()
            ),
        })
    }

    /// What is to be said when the bound has passed.
    pub(super) fn bounded(&self) -> Ended {
        let Some(most) = self.most else {
            return Ended {
                steady: true,
                says: "as long as the experiment says".to_owned(),
            };
        };
        Ended {
            steady: false,
            says: format!(
                "the throughput was not steady within {:.0} s: {} requests in the last seconds; what was measured may still \
                 have been warming up",
                most.as_secs_f64(),
                self.last()
            ),
        }
    }

    fn is_steady(&self) -> bool {
        let older: u64 = self.counts.iter().take(self.half).sum();
        let newer: u64 = self.counts.iter().skip(self.half).sum();
        let (sum, apart) = ((older + newer) as f64, older.abs_diff(newer) as f64);
        newer > 0 && (apart <= ALIKE * sum / 2.0 || apart <= DEVIATIONS * sum.sqrt())
    }

    fn last(&self) -> String {
        let counts: Vec<String> = self.counts.iter().map(u64::to_string).collect();
        counts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{FaultSpec, Moment};

    fn warm_up(least: &str) -> WarmUp {
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        experiment.warm_up = crate::duration::parse(least).unwrap();
        WarmUp::of(&experiment)
    }

    fn second(index: u64, ok: u64) -> Second {
        // Whatever else a second says does not matter here.
        let json = serde_json::json!({
            "index": index, "start_s": index, "length_s": 1.0, "warm_up": true, "ok": ok, "errors": {},
            "p50_ms": 1.0, "p95_ms": 1.0, "max_ms": 1.0,
        });
        serde_json::from_value(json).unwrap()
    }

    /// After how many seconds it is steady.
    fn steady_after(least: &str, counts: &[u64]) -> Option<usize> {
        let mut warm_up = warm_up(least);
        let steady = counts
            .iter()
            .zip(0..)
            .position(|(ok, index)| warm_up.see(&second(index, *ok)).is_some());
        steady.map(|index| index + 1)
    }

    #[test]
    fn a_load_that_is_steady_from_the_start_is_warm_after_the_least() {
        assert_eq!(steady_after("2s", &[500, 505, 498]), Some(2));
        assert_eq!(steady_after("5s", &[500, 505, 498, 503, 500, 497, 501, 500]), Some(6));
    }

    #[test]
    fn a_load_that_still_grows_is_waited_for() {
        assert_eq!(steady_after("2s", &[10, 100, 300, 480, 500, 505]), Some(5));
        assert_eq!(steady_after("2s", &[0, 0, 0, 40]), None);
    }

    #[test]
    fn few_requests_differ_by_chance() {
        assert_eq!(steady_after("2s", &[9, 12, 8]), Some(2));
        assert_eq!(steady_after("2s", &[0, 9, 11]), Some(3));
    }

    #[test]
    fn what_never_gets_steady_ends_at_a_bound_and_says_so() {
        let mut warm_up = warm_up("2s");
        assert_eq!(warm_up.bound(), Duration::from_secs(16));
        for index in 0..16 {
            assert_eq!(
                warm_up.see(&second(index, if index % 2 == 0 { 400 } else { 100 })),
                None
            );
        }
        let ended = warm_up.bounded();
        assert!(!ended.steady && ended.says.contains("400, 100"), "{ended:?}");
    }

    #[test]
    fn with_faults_or_without_a_warm_up_there_is_nothing_to_find_out() {
        assert_eq!(warm_up("0s").bound(), Duration::ZERO);
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        experiment.faults.push(FaultSpec {
            kind: "kill".into(),
            target: "redis".into(),
            at: Moment::Load(Duration::from_secs(3)),
            duration: Duration::from_secs(1),
            rtt: None,
            arms: Vec::new(),
        });
        let mut fixed = WarmUp::of(&experiment);
        assert_eq!((fixed.most(), fixed.bound()), (None, experiment.warm_up));
        assert_eq!(fixed.see(&second(0, 100)), None);
        assert!(fixed.bounded().steady);
    }

    #[test]
    fn a_second_that_was_cut_off_or_is_measured_already_does_not_count() {
        let mut warm_up = warm_up("1s");
        let cut = Second {
            length_s: 0.4,
            ..second(1, 20)
        };
        let measured = Second {
            warm_up: false,
            ..second(2, 100)
        };
        for each in [second(0, 100), cut, measured] {
            assert_eq!(warm_up.see(&each), None);
        }
        assert!(warm_up.see(&second(3, 100)).is_some());
    }
}
