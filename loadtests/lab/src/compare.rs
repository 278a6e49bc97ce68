//! Two runs of one experiment against each other: what changed from the first to the second, and by how much.
//!
//! Rounds of different runs share no noise, so nothing is paired here: the intervals are Welch's, on the logarithms of the
//! rounds' values, and wider than those inside a run.

mod comparable;

use serde::Serialize;

use crate::analysis::stats;
use crate::archive::Archived;
use crate::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::results::{Arm, Verdict};

/// A run with the experiment as it was run.
#[derive(Debug)]
pub(crate) struct Run {
    experiment: Experiment,
    archived: Archived,
}

/// What changed from run A to run B.
#[derive(Debug, Serialize)]
pub(crate) struct Changes {
    pub(crate) experiment: String,
    /// How the intervals were made.
    pub(crate) method: &'static str,
    pub(crate) arms: Vec<ArmChange>,
    /// Claims whose verdict is another one.
    pub(crate) claims: Vec<ClaimChange>,
    /// What differs and does not forbid a comparison: versions, time.
    pub(crate) differences: Vec<String>,
}

/// One arm in both runs.
#[derive(Debug, Serialize)]
pub(crate) struct ArmChange {
    pub(crate) arm: String,
    /// Iterations a second.
    pub(crate) throughput: Change,
    /// Milliseconds.
    pub(crate) p95: Change,
}

/// One figure in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) a: f64,
    pub(crate) b: f64,
    /// B ÷ A; of the rounds' geometric means where there are rounds.
    pub(crate) ratio: f64,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) finding: Finding,
}

/// What a change comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Finding {
    Higher,
    Lower,
    /// The interval contains 1: the runs may differ, and these rounds do not show it.
    NoDifferenceShown,
    /// Fewer than 4 rounds in one of the runs, or results from before the rounds' values were kept.
    Inconclusive,
}

/// A claim judged differently.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ClaimChange {
    pub(crate) text: String,
    pub(crate) a: Verdict,
    pub(crate) b: Verdict,
}

const METHOD: &str = "Welch's t on the logarithms of the rounds; rounds of two runs are not paired";

impl Run {
    /// The run whose results were read.
    ///
    /// # Errors
    /// The experiment's copy is missing or malformed.
    pub(crate) fn of(archived: Archived) -> Outcome<Self> {
        let experiment = Experiment::of_results(&archived.folder)?;
        Ok(Self { experiment, archived })
    }
}

/// Compares B to A.
///
/// # Errors
/// They are not comparable; one reason a line.
pub(crate) fn compare(a: &Run, b: &Run) -> Result<Changes, Vec<String>> {
    let reasons = comparable::reasons_against(a, b);
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let (before, after) = (&a.archived.results, &b.archived.results);
    let both = before.arms.iter().filter_map(|arm| {
        let same = after.arms.iter().find(|other| other.name == arm.name)?;
        Some((arm, same))
    });
    Ok(Changes {
        experiment: before.experiment.clone(),
        method: METHOD,
        arms: both.map(|(a, b)| arm_change(a, b)).collect(),
        claims: before
            .claims
            .iter()
            .filter_map(|claim| {
                let other = after.claims.iter().find(|other| other.text == claim.text)?;
                (other.verdict != claim.verdict).then(|| ClaimChange {
                    text: claim.text.clone(),
                    a: claim.verdict,
                    b: other.verdict,
                })
            })
            .collect(),
        differences: comparable::differences(a, b),
    })
}

/// How a refusal ends the program.
pub(crate) fn refusal(reasons: &[String]) -> Failure {
    Failure::Usage(format!("not comparable:\n  {}", reasons.join("\n  ")))
}

fn arm_change(a: &Arm, b: &Arm) -> ArmChange {
    ArmChange {
        arm: a.name.clone(),
        throughput: change(
            [a.throughput.mean, b.throughput.mean],
            [&a.throughput.rounds, &b.throughput.rounds],
        ),
        p95: change(
            [a.latency_ms.p95, b.latency_ms.p95],
            [&a.p95_rounds_ms, &b.p95_rounds_ms],
        ),
    }
}

fn change([a, b]: [f64; 2], [rounds_a, rounds_b]: [&[f64]; 2]) -> Change {
    let ratio = stats::unpaired_ratio(rounds_b, rounds_a);
    let ci95 = ratio.and_then(|ratio| ratio.ci95);
    Change {
        a,
        b,
        ratio: ratio.map_or(b / a, |ratio| ratio.mean),
        ci95,
        finding: match ci95 {
            None => Finding::Inconclusive,
            Some([low, _]) if low > 1.0 => Finding::Higher,
            Some([_, high]) if high < 1.0 => Finding::Lower,
            Some(_) => Finding::NoDifferenceShown,
        },
    }
}

#[cfg(test)]
mod tests;
