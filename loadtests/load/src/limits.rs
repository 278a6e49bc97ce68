//! What ends a load before its time: bounds on errors and latency, and a rate that is not reached.
//!
//! All of them look at the last seconds that have ended, the first warm-up left out: a cold system is not judged.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::error::LoadError;
use crate::summary::quantile_ms;
use crate::tally::Tally;

/// The longest stretch that is looked back at; each of its seconds is kept with a histogram.
const LONGEST: Duration = Duration::from_secs(60);
/// Iterations below which a share or a quantile says nothing.
const ENOUGH: u64 = 20;

/// A bound that ends the load when it does not hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// What is bounded.
    pub measure: Measure,
    /// The bound: a share from 0 to 1, or ms.
    pub at_most: f64,
    /// The stretch of time it is measured over: a second to a minute, and no longer than the load without its first warm-up.
    pub over: Duration,
}

/// What a [`Threshold`] bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// Failed iterations as a share of all.
    ErrorShare,
    /// A quantile (0 to 1) of the latency, which in an open loop is the corrected one.
    Latency(f64),
}

/// Ends an open loop that sends less than a share of what its rate asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct AbortBelow {
    /// The least share, more than 0 and at most 1.
    pub share: f64,
    /// The stretch of time it is measured over, as of a [`Threshold`].
    pub over: Duration,
}

/// Refuses rules that cannot hold, or that nothing is ever held against; `judged` is how long the load is watched.
pub(crate) fn check(thresholds: &[Threshold], abort: Option<&AbortBelow>, judged: Duration) -> Result<(), LoadError> {
    let wrong = |text: String| Err(LoadError::Shape(text));
    for threshold in thresholds {
        let holds = match threshold.measure {
            Measure::ErrorShare => (0.0..1.0).contains(&threshold.at_most),
            Measure::Latency(quantile) => (0.0..=1.0).contains(&quantile) && threshold.at_most > 0.0,
        };
        if !holds {
            return wrong(format!(
                "the threshold `{threshold}` holds always or never; a share is at least 0 and below 1, a latency more than 0 ms"
            ));
        }
    }
    if let Some(abort) = abort.filter(|abort| !(abort.share > 0.0 && abort.share <= 1.0)) {
        return wrong(format!(
            "the share of the rate to fall below is more than 0 and at most 1, not {}",
            abort.share
        ));
    }
    let rules = thresholds
        .iter()
        .map(|threshold| (threshold.to_string(), threshold.over));
    let rate = abort.map(|abort| (format!("at least {} % of the rate", percent(abort.share)), abort.over));
    for (rule, over) in rules.chain(rate) {
        let seconds = over.as_secs_f64();
        if !(Duration::from_secs(1)..=LONGEST).contains(&over) {
            let longest = LONGEST.as_secs();
            return wrong(format!("a threshold looks back at 1 s to {longest} s, not {seconds} s"));
        }
        if over > judged {
            return wrong(format!(
                "the threshold `{rule}` would never be judged: it looks back at {seconds} s, and without its first warm-up \
                 the load lasts {} s; let it look back at less, or the load last longer",
                judged.as_secs_f64()
            ));
        }
    }
    Ok(())
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.measure {
            Measure::ErrorShare => write!(f, "errors at most {} %", percent(self.at_most)),
            Measure::Latency(quantile) => write!(f, "{} at most {} ms", name(quantile), self.at_most),
        }
    }
}

/// A share as people write it: 99.9 and not 99.90000000000001.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A quantile as people say it: p99.9.
fn name(quantile: f64) -> String {
    format!("p{}", (quantile * 1e5).round() / 1e3)
}

/// One second as the rules see it.
pub(crate) struct Seen {
    pub(crate) length: Duration,
    pub(crate) tally: Tally,
    /// Sends of an open loop whose time came.
    pub(crate) asked: u64,
    /// Sends that were made.
    pub(crate) sent: u64,
    /// Sends whose time was noticed too late.
    pub(crate) overdue: u64,
}

/// The rules of a run with the seconds they look back at.
pub(crate) struct Watch {
    thresholds: Vec<Threshold>,
    abort: Option<AbortBelow>,
    longest: Duration,
    seconds: VecDeque<Seen>,
}

impl Watch {
    /// `None` where there is nothing to watch.
    pub(crate) fn new(thresholds: &[Threshold], abort: Option<&AbortBelow>) -> Option<Self> {
        let stretches = thresholds.iter().map(|threshold| threshold.over);
        let longest = stretches.chain(abort.map(|abort| abort.over)).max()?;
        Some(Self {
            thresholds: thresholds.to_vec(),
            abort: abort.cloned(),
            longest,
            seconds: VecDeque::new(),
        })
    }

    /// Takes a second in; gives the reason when the load has to end with it.
    pub(crate) fn see(&mut self, seen: Seen) -> Option<String> {
        self.seconds.push_back(seen);
        let mut length: Duration = self.seconds.iter().map(|second| second.length).sum();
        while let Some(oldest) = self.seconds.front()
            && length - oldest.length >= self.longest
        {
            length -= oldest.length;
            self.seconds.pop_front();
        }
        let broken = self.thresholds.iter().find_map(|threshold| self.broken(threshold));
        broken.or_else(|| self.missed(self.abort.as_ref()?))
    }

    /// The latest seconds that are `over` long together, unless there are not that many yet.
    fn last(&self, over: Duration) -> Option<impl Iterator<Item = &Seen> + Clone> {
        let mut length = Duration::ZERO;
        let mut count = 0;
        while length < over {
            length += self.seconds.iter().rev().nth(count)?.length;
            count += 1;
        }
        Some(self.seconds.iter().rev().take(count))
    }

    fn broken(&self, threshold: &Threshold) -> Option<String> {
        let mut all = Tally::new(false);
        for second in self.last(threshold.over)? {
            all.merge_corrected(&second.tally);
        }
        let (ok, failed) = (all.latency.len(), all.failed());
        let over = threshold.over.as_secs_f64();
        match threshold.measure {
            Measure::ErrorShare => {
                let share = failed as f64 / (ok + failed).max(1) as f64;
                (ok + failed >= ENOUGH && share > threshold.at_most).then(|| {
                    format!(
                        "{failed} of {} iterations failed within {over} s ({:.1} %); the threshold is {threshold}",
                        ok + failed,
                        share * 100.0
                    )
                })
            }
            Measure::Latency(quantile) => {
                let measured = quantile_ms(&all.latency, quantile);
                (ok >= ENOUGH && measured > threshold.at_most).then(|| {
                    format!(
                        "{} was {measured:.1} ms within {over} s; the threshold is {threshold}",
                        name(quantile)
                    )
                })
            }
        }
    }

    fn missed(&self, rule: &AbortBelow) -> Option<String> {
        let seconds = self.last(rule.over)?;
        let length: f64 = seconds.clone().map(|second| second.length.as_secs_f64()).sum();
        let sum = |field: fn(&Seen) -> u64| seconds.clone().map(field).sum::<u64>();
        let (asked, sent, overdue) = (sum(|seen| seen.asked), sum(|seen| seen.sent), sum(|seen| seen.overdue));
        let share = sent as f64 / asked.max(1) as f64;
        (asked >= ENOUGH && share < rule.share).then(|| {
            let cause = if overdue * 2 >= asked {
                "the generator itself fell behind"
            } else {
                "every slot was taken, so the system is slower than the rate"
            };
            format!(
                "the rate was missed: within {length:.0} s {:.1} of {:.1} requests a second were sent ({:.1} %, at least {:.1} % \
                 were asked for): {cause}",
                sent as f64 / length,
                asked as f64 / length,
                share * 100.0,
                rule.share * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Failure, Iteration, Kind};

    const SECOND: Duration = Duration::from_secs(1);

    fn errors(at_most: f64, over: u64) -> Threshold {
        Threshold {
            measure: Measure::ErrorShare,
            at_most,
            over: SECOND * u32::try_from(over).unwrap(),
        }
    }

    /// A second with so many iterations of `millis` and so many failures.
    fn second(ok: usize, millis: u64, failed: usize) -> Seen {
        let mut tally = Tally::new(false);
        for number in 0..ok + failed {
            let outcome = match number {
                number if number < ok => Ok(()),
                _ => Err(Failure::new(Kind::Closed, "")),
            };
            let timed = Duration::from_millis(millis);
            tally.count(&Iteration { timed, outcome }, Duration::ZERO);
        }
        Seen {
            length: SECOND,
            tally,
            asked: 0,
            sent: 0,
            overdue: 0,
        }
    }

    fn sent(asked: u64, sent: u64, overdue: u64) -> Seen {
        Seen {
            asked,
            sent,
            overdue,
            ..second(0, 0, 0)
        }
    }

    #[test]
    fn a_share_of_errors_is_that_of_the_last_seconds_and_not_judged_before_they_are_over() {
        let mut watch = Watch::new(&[errors(0.1, 3)], None).unwrap();
        assert_eq!(watch.see(second(0, 1, 100)), None, "one second of three");
        assert_eq!(watch.see(second(1000, 1, 0)), None);
        assert_eq!(watch.see(second(1000, 1, 0)), None, "100 of 2100");
        assert_eq!(watch.see(second(1000, 1, 0)), None);
        let reason = watch.see(second(700, 1, 400)).unwrap();
        assert!(
            reason.contains("400 of 3100 iterations failed within 3 s (12.9 %)"),
            "{reason}"
        );
        assert_eq!(watch.seconds.len(), 3, "older seconds are forgotten");
    }

    #[test]
    fn a_quantile_is_judged_when_there_is_enough_to_judge() {
        let p95 = Threshold {
            measure: Measure::Latency(0.95),
            at_most: 100.0,
            over: SECOND,
        };
        let mut watch = Watch::new(&[p95], None).unwrap();
        assert_eq!(watch.see(second(19, 500, 0)), None);
        assert_eq!(watch.see(second(100, 99, 0)), None);
        let reason = watch.see(second(100, 200, 0)).unwrap();
        assert!(
            reason.contains("p95 was 200.") && reason.contains("p95 at most 100 ms"),
            "{reason}"
        );
    }

    #[test]
    fn a_rate_that_is_missed_for_as_long_as_the_rule_says_is_said_with_both_rates() {
        let rule = AbortBelow {
            share: 0.9,
            over: 2 * SECOND,
        };
        let mut watch = Watch::new(&[], Some(&rule)).unwrap();
        assert_eq!(watch.see(sent(100, 100, 0)), None);
        assert_eq!(watch.see(sent(100, 85, 3)), None, "92.5 % over the two");
        let reason = watch.see(sent(100, 85, 3)).unwrap();
        assert!(reason.contains("85.0 of 100.0 requests a second"), "{reason}");
        assert!(reason.contains("the system is slower than the rate"), "{reason}");
        watch.see(sent(100, 50, 80));
        let reason = watch.see(sent(100, 50, 80)).unwrap();
        assert!(reason.contains("the generator itself fell behind"), "{reason}");
    }

    #[test]
    fn without_a_rule_there_is_nothing_to_watch_and_rules_that_cannot_be_are_refused() {
        assert!(Watch::new(&[], None).is_none());
        for (threshold, reason) in [
            (errors(1.0, 5), "always or never"),
            (errors(0.5, 90), "not 90 s"),
            (
                errors(0.5, 11),
                "`errors at most 50 %` would never be judged: it looks back at 11 s",
            ),
        ] {
            let error = check(&[threshold], None, 10 * SECOND).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        check(&[errors(0.5, 10)], None, 10 * SECOND).unwrap();
        let rule = AbortBelow {
            share: 0.9,
            over: 11 * SECOND,
        };
        let error = check(&[], Some(&rule), 10 * SECOND).unwrap_err().to_string();
        assert!(error.contains("`at least 90 % of the rate`"), "{error}");
    }
}
