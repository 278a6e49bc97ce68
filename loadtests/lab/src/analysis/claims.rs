//! Claims, judged: against an interval where there are rounds enough for one, never on a single noisy number, and never
//! more finely than two arms that are the same can be told apart.

use super::comparisons::{self, Measurements};
use super::metric;
use super::stats::{self, FEWEST_ROUNDS};
use crate::experiment::{ClaimSpec, Expect, Experiment, Metric};
use crate::published::Published;
use crate::results::{Arm, Cause, Claim, Verdict};

/// What the claims of an experiment are judged by.
pub(super) struct Bench<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) arms: &'a [Arm],
    pub(super) evidence: &'a Measurements,
    pub(super) published: Option<&'a Published>,
}

type Judged = (Option<f64>, Option<[f64; 2]>, Verdict, String);

impl Bench<'_> {
    /// Judges one claim. What is measured is said also where the published figure cannot hold.
    pub(super) fn judge(&self, claim: &ClaimSpec) -> Claim {
        let figure_id = claim.figure.as_deref();
        let stated = figure_id.and_then(|id| self.published?.figure(id).ok());
        let (measured, ci95, mut verdict, mut note) = match claim.metric {
            Metric::BlamedRow => self.blamed_row(claim),
            _ => decide(claim, &self.measured(claim)),
        };
        if let Some(arm) = self.limited_by_the_generator(claim)
            && verdict != Verdict::Inconclusive
        {
            verdict = Verdict::Inconclusive;
            note += &format!("; the load generator was the limit of `{arm}`, which says nothing about the system");
        }
        if let Some(why) = figure_id.and_then(|id| self.published?.cannot_hold(id)) {
            verdict = Verdict::CannotHold;
            note = why.to_owned();
        }
        Claim {
            text: claim.text.clone(),
            figure: claim.figure.clone(),
            published: stated.map(|figure| figure.value),
            measured,
            ci95,
            verdict,
            must: claim.must,
            note,
        }
    }

    /// An arm of the claim in which the generator was the limit; what is claimed of the generator itself or of settings holds
    /// all the same.
    fn limited_by_the_generator<'c>(&self, claim: &'c ClaimSpec) -> Option<&'c str> {
        if matches!(claim.metric, Metric::GeneratorCpu | Metric::NotInForce) {
            return None;
        }
        let limited = |name: &&String| {
            let mut arms = self.arms.iter();
            arms.any(|arm| arm.name == **name && arm.bottleneck.cause == Cause::GeneratorLimited)
        };
        claim.arms.iter().find(limited).map(String::as_str)
    }

    /// Which row is to blame is said by the majority of all lock samples; one good or bad round alone decides nothing here
    /// either.
    fn blamed_row(&self, claim: &ClaimSpec) -> Judged {
        let wanted = claim.row.as_deref().unwrap_or_default();
        let Some(arm) = claim
            .arms
            .first()
            .and_then(|name| self.arms.iter().find(|arm| arm.name == *name))
        else {
            return (None, None, Verdict::Inconclusive, "the arm has no result".to_owned());
        };
        if arm.locks.samples == 0 {
            return (
                None,
                None,
                Verdict::Inconclusive,
                "no lock sample fell into the measured window".to_owned(),
            );
        }
        let row = arm.locks.rows.first();
        let blamed = arm.bottleneck.cause == Cause::RowLock && row.is_some_and(|row| row.relation == wanted);
        let holds = blamed == (claim.expect == Expect::Is);
        let rounds = arm.throughput.rounds.len();
        let (verdict, few) = match holds {
            _ if rounds < FEWEST_ROUNDS => (Verdict::Inconclusive, too_few(rounds) + "; "),
            true => (Verdict::Reproduced, String::new()),
            false => (Verdict::NotReproduced, String::new()),
        };
        let note = format!("{few}{}", arm.bottleneck.text);
        (Some(arm.locks.waiters_mean), None, verdict, note)
    }

    /// The value of one arm, or the ratio of two.
    fn measured(&self, claim: &ClaimSpec) -> Measured {
        if let [arm, against] = claim.arms.as_slice() {
            let pairs = comparisons::pairs(self.evidence, arm, against, claim.metric);
            return Measured {
                noise: comparisons::noise(self.experiment, self.evidence, claim.metric),
                ..Measured::quotient(&pairs)
            };
        }
        let mine = self
            .evidence
            .iter()
            .filter(|(key, _)| claim.arms.first() == Some(&key.arm));
        let values: Vec<f64> = mine.filter_map(|(_, run)| metric::of_run(claim.metric, run)).collect();
        if claim.metric.is_quotient() {
            return Measured::quotient(&values.iter().map(|value| (*value, 1.0)).collect::<Vec<_>>());
        }
        Measured {
            value: (!values.is_empty()).then(|| stats::mean(values.iter().copied())),
            ci95: stats::mean_ci95(&values),
            rounds: values.len(),
            noise: None,
        }
    }
}

/// What a claim is held against.
struct Measured {
    value: Option<f64>,
    ci95: Option<[f64; 2]>,
    rounds: usize,
    /// How far two arms that are the same may lie apart, as a logarithm; `None` where that was not measured.
    noise: Option<f64>,
}

impl Measured {
    /// First ÷ second over paired rounds.
    fn quotient(pairs: &[(f64, f64)]) -> Self {
        let ratio = stats::ratio(pairs);
        Self {
            value: ratio.map(|ratio| ratio.mean),
            ci95: ratio.and_then(|ratio| ratio.ci95),
            rounds: pairs.len(),
            noise: None,
        }
    }
}

fn decide(claim: &ClaimSpec, measured: &Measured) -> Judged {
    let (Some(value), Some(ci95)) = (measured.value, measured.ci95) else {
        return (measured.value, None, Verdict::Inconclusive, too_few(measured.rounds));
    };
    let bounds = bounds(claim);
    let wanted = claim.value.unwrap_or_default();
    let asked = match claim.expect {
        Expect::AtMost => format!("at most {wanted}"),
        Expect::AtLeast => format!("at least {wanted}"),
        _ => format!("within a factor of {} of {wanted}", 1.0 + claim.tolerance()),
    };
    let mut note = format!("{asked}; 95 % interval {:.3} … {:.3}", ci95[0], ci95[1]);
    let mut verdict = verdict(bounds, ci95);
    if verdict != Verdict::Inconclusive
        && let Some(noise) = measured.noise.filter(|noise| distance(value, bounds) <= *noise)
    {
        verdict = Verdict::Inconclusive;
        note += &format!(
            "; within the noise floor: two arms that are the same differ by up to a factor of {:.3}",
            noise.exp()
        );
    }
    (Some(value), Some(ci95), verdict, note)
}

fn too_few(rounds: usize) -> String {
    format!("{rounds} of at least {FEWEST_ROUNDS} rounds: no interval, no verdict")
}

/// What the claim allows.
fn bounds(claim: &ClaimSpec) -> [f64; 2] {
    let wanted = claim.value.unwrap_or_default();
    let near = 1.0 + claim.tolerance();
    match claim.expect {
        Expect::AtMost => [f64::NEG_INFINITY, wanted],
        Expect::AtLeast => [wanted, f64::INFINITY],
        Expect::Near | Expect::Is | Expect::IsNot => [wanted / near, wanted * near],
    }
}

/// An interval wholly inside the claim reproduces it, wholly outside refutes it, across its border decides nothing.
fn verdict([least, most]: [f64; 2], [low, high]: [f64; 2]) -> Verdict {
    if low >= least && high <= most {
        Verdict::Reproduced
    } else if high < least || low > most {
        Verdict::NotReproduced
    } else {
        Verdict::Inconclusive
    }
}

/// How far a ratio is from the nearest border of the claim, as a logarithm. The effect that noise must not exceed is this one:
/// a claim of "no more than 1.25" does not ask whether 1.04 differs from 1, but whether it differs from 1.25.
fn distance(value: f64, bounds: [f64; 2]) -> f64 {
    let positive = bounds.into_iter().filter(|border| border.is_finite() && *border > 0.0);
    positive
        .map(|border| (value / border).ln().abs())
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_across_the_border_of_a_claim_decides_nothing() {
        let judged = |expect: Expect, value: f64, tolerance: Option<f64>, ci95: [f64; 2]| {
            let claim = ClaimSpec {
                expect,
                value: Some(value),
                tolerance,
                ..Experiment::find("row-lock-demo").unwrap().claims[0].clone()
            };
            verdict(bounds(&claim), ci95)
        };
        for (expect, value, tolerance, ci95, wanted) in [
            (Expect::AtMost, 1.1, None, [0.9, 1.05], Verdict::Reproduced),
            (Expect::AtMost, 1.1, None, [0.9, 1.2], Verdict::Inconclusive),
            (Expect::AtMost, 1.1, None, [1.2, 1.3], Verdict::NotReproduced),
            (Expect::AtLeast, 2.0, None, [2.5, 9.0], Verdict::Reproduced),
            (Expect::AtLeast, 2.0, None, [0.5, 1.9], Verdict::NotReproduced),
            (Expect::Near, 2.0, None, [1.8, 2.2], Verdict::Reproduced),
            (Expect::Near, 2.0, None, [2.5, 2.6], Verdict::NotReproduced),
            (Expect::Near, 2.0, None, [1.0, 3.0], Verdict::Inconclusive),
            (Expect::Near, 2.0, Some(0.05), [1.8, 2.2], Verdict::Inconclusive),
            (Expect::Near, 2.0, Some(0.5), [1.4, 2.9], Verdict::Reproduced),
        ] {
            assert_eq!(
                judged(expect, value, tolerance, ci95),
                wanted,
                "{expect:?} {value} {ci95:?}"
            );
        }
    }

    #[test]
    fn the_distance_to_a_claim_is_that_to_its_nearest_border() {
        assert!((distance(1.0, [f64::NEG_INFINITY, 1.25]) - 1.25_f64.ln()).abs() < 1e-12);
        assert!((distance(1.1, [1.0 / 1.2, 1.2]) - (1.2_f64 / 1.1).ln()).abs() < 1e-12);
        assert_eq!(distance(1.0, [f64::NEG_INFINITY, 0.0]), f64::INFINITY);
    }
}
