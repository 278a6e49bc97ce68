//! Claims, judged: against an interval where there are rounds enough for one, and never on a single noisy number.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::stats::{self, FEWEST_ROUNDS};
use crate::events::RunKey;
use crate::experiment::{ClaimSpec, Expect, Metric};
use crate::published::Published;
use crate::results::{Arm, Cause, Claim, Verdict};

/// `near` allows this factor either way.
const NEAR: f64 = 1.2;

/// Judges one claim. What is measured is said also where the published figure cannot hold.
pub(super) fn judge(
    claim: &ClaimSpec,
    arms: &[Arm],
    evidence: &BTreeMap<RunKey, Evidence>,
    published: Option<&Published>,
) -> Claim {
    let figure_id = claim.figure.as_deref();
    let stated = figure_id.and_then(|id| published?.figure(id).ok());
    let (measured, ci95, mut verdict, mut note) = match claim.metric {
        Metric::BlamedRow => blamed_row(claim, arms),
        _ => figure(claim, evidence),
    };
    if let Some(why) = figure_id.and_then(|id| published?.cannot_hold(id)) {
        verdict = Verdict::CannotHold;
        note = why.to_owned();
    }
    Claim {
        text: claim.text.clone(),
        published: stated.map(|figure| figure.value),
        measured,
        ci95,
        verdict,
        must: claim.must,
        note,
    }
}

/// Values of two arms from the rounds that hold both.
pub(super) fn pairs(
    evidence: &BTreeMap<RunKey, Evidence>,
    arm: &str,
    against: &str,
    value: impl Fn(&Evidence) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let of = |key: &RunKey| evidence.get(key).and_then(&value);
    let mine = evidence.keys().filter(|key| key.arm == arm);
    mine.filter_map(|key| {
        Some((
            of(key)?,
            of(&RunKey {
                round: key.round,
                arm: against.to_owned(),
            })?,
        ))
    })
    .collect()
}

type Judged = (Option<f64>, Option<[f64; 2]>, Verdict, String);

fn blamed_row(claim: &ClaimSpec, arms: &[Arm]) -> Judged {
    let wanted = claim.row.as_deref().unwrap_or_default();
    let Some(arm) = claim
        .arms
        .first()
        .and_then(|name| arms.iter().find(|arm| arm.name == *name))
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
    let verdict = if holds {
        Verdict::Reproduced
    } else {
        Verdict::NotReproduced
    };
    (Some(arm.locks.waiters_mean), None, verdict, arm.bottleneck.text.clone())
}

fn figure(claim: &ClaimSpec, evidence: &BTreeMap<RunKey, Evidence>) -> Judged {
    let value = |run: &Evidence| {
        let load = run.load.as_ref()?;
        Some(match claim.metric {
            Metric::Throughput => load.throughput,
            Metric::P95 => load.latency_ms(0.95),
            Metric::Waiters => stats::mean(run.locks.iter().map(|sample| sample.waiters.len() as f64)),
            Metric::GeneratorCpu => load.generator_cpu_s / load.seconds.max(f64::EPSILON),
            Metric::CycleOverP95 => load.users as f64 / load.throughput * 1000.0 / load.latency_ms(0.95),
            Metric::QueueMax => f64::from(run.queue_max()),
            Metric::Drain => run.drain_s?,
            Metric::NotInForce => run.not_in_force.len() as f64,
            Metric::BlamedRow => return None,
        })
    };
    let (measured, ci95, rounds) = match claim.arms.as_slice() {
        [arm, against] => {
            let pairs = pairs(evidence, arm, against, value);
            let ratio = stats::ratio(&pairs);
            (
                ratio.map(|ratio| ratio.mean),
                ratio.and_then(|ratio| ratio.ci95),
                pairs.len(),
            )
        }
        arms => {
            let mine = evidence
                .iter()
                .filter(|(key, _)| arms.first().is_some_and(|arm| key.arm == *arm));
            let values: Vec<f64> = mine.filter_map(|(_, run)| value(run)).collect();
            let mean = (!values.is_empty()).then(|| stats::mean(values.iter().copied()));
            (mean, stats::mean_ci95(&values), values.len())
        }
    };
    let Some(ci95) = ci95 else {
        let note = format!("{rounds} of at least {FEWEST_ROUNDS} rounds: no interval, no verdict");
        return (measured, None, Verdict::Inconclusive, note);
    };
    let wanted = claim.value.unwrap_or_default();
    let verdict = verdict(claim.expect, wanted, ci95);
    let asked = match claim.expect {
        Expect::AtMost => format!("at most {wanted}"),
        Expect::AtLeast => format!("at least {wanted}"),
        _ => format!("within a factor of {NEAR} of {wanted}"),
    };
    (
        measured,
        Some(ci95),
        verdict,
        format!("{asked}; 95 % interval {:.3} … {:.3}", ci95[0], ci95[1]),
    )
}

/// An interval wholly inside the claim reproduces it, wholly outside refutes it, across its border decides nothing.
fn verdict(expect: Expect, wanted: f64, [low, high]: [f64; 2]) -> Verdict {
    let (least, most) = match expect {
        Expect::AtMost => (f64::NEG_INFINITY, wanted),
        Expect::AtLeast => (wanted, f64::INFINITY),
        Expect::Near | Expect::Is | Expect::IsNot => (wanted / NEAR, wanted * NEAR),
    };
    if low >= least && high <= most {
        Verdict::Reproduced
    } else if high < least || low > most {
        Verdict::NotReproduced
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_across_the_border_of_a_claim_decides_nothing() {
        assert_eq!(verdict(Expect::AtMost, 1.1, [0.9, 1.05]), Verdict::Reproduced);
        assert_eq!(verdict(Expect::AtMost, 1.1, [0.9, 1.2]), Verdict::Inconclusive);
        assert_eq!(verdict(Expect::AtMost, 1.1, [1.2, 1.3]), Verdict::NotReproduced);
        assert_eq!(verdict(Expect::AtLeast, 2.0, [2.5, 9.0]), Verdict::Reproduced);
        assert_eq!(verdict(Expect::AtLeast, 2.0, [0.5, 1.9]), Verdict::NotReproduced);
        assert_eq!(verdict(Expect::Near, 2.0, [1.8, 2.2]), Verdict::Reproduced);
        assert_eq!(verdict(Expect::Near, 2.0, [2.5, 2.6]), Verdict::NotReproduced);
        assert_eq!(verdict(Expect::Near, 2.0, [1.0, 3.0]), Verdict::Inconclusive);
    }
}
