//! The ledger: every published figure beside its latest measured counterpart.

use serde::Serialize;

use crate::analysis::stats::FEWEST_ROUNDS;
use crate::archive::Archived;
use crate::experiment::Metric;
use crate::published::{Figure, Published};
use crate::results::{Arm, Environment, Verdict};

/// One published figure and what was measured of it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Entry {
    pub(crate) story: String,
    pub(crate) figure: String,
    pub(crate) says: String,
    pub(crate) metric: Metric,
    pub(crate) unit: String,
    pub(crate) published: f64,
    /// Absent where nothing was measured.
    pub(crate) measured: Option<f64>,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) verdict: Standing,
    /// Why the verdict is what it is, or what would measure the figure.
    pub(crate) note: String,
    /// Experiments that measure it.
    pub(crate) measured_by: Vec<String>,
    /// What the audit of the published figure found.
    pub(crate) audit: Vec<String>,
    pub(crate) counterpart: Option<Counterpart>,
}

/// Where a measured value comes from.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Counterpart {
    pub(crate) experiment: String,
    /// Text of the claim, or name of the arm.
    pub(crate) of: String,
    pub(crate) rounds: u32,
    /// RFC 3339.
    pub(crate) date: String,
    pub(crate) environment: Environment,
    pub(crate) folder: String,
}

/// How a published figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Standing {
    Reproduced,
    NotReproduced,
    Inconclusive,
    CannotHold,
    /// Measured, on another machine than the published one: absolute figures stand side by side and are not judged, ratios
    /// are.
    NotComparable,
    NotMeasured,
}

impl From<Verdict> for Standing {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Reproduced => Self::Reproduced,
            Verdict::NotReproduced => Self::NotReproduced,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::CannotHold => Self::CannotHold,
        }
    }
}

/// What one run says of a figure.
struct Found {
    measured: Option<f64>,
    ci95: Option<[f64; 2]>,
    verdict: Standing,
    note: String,
    of: String,
}

/// Every figure of a story against the runs in `archive`, which is sorted, latest first. Runs that were interrupted or broke
/// an invariant do not count: their claims were judged on part of what they promised.
pub(crate) fn entries(story: &str, published: &Published, archive: &[Archived]) -> Vec<Entry> {
    let figures = published.figures.iter();
    figures.map(|figure| entry(story, published, figure, archive)).collect()
}

fn entry(story: &str, published: &Published, figure: &Figure, archive: &[Archived]) -> Entry {
    let whole = archive
        .iter()
        .filter(|run| run.results.completed && figure.measured_by.contains(&run.results.experiment));
    let mut said: Vec<(&Archived, Found)> = whole
        .filter_map(|run| Some((run, found(figure, run)?)))
        .filter(|(_, found)| found.measured.is_some())
        .collect();
    // A run with too few rounds counts only where there is no better one. The order is stable: the latest stays first.
    said.sort_by_key(|(run, _)| (run.results.rounds as usize) < FEWEST_ROUNDS);
    let latest = said.into_iter().next();

    let cannot_hold = published.cannot_hold(&figure.id);
    let (measured, ci95, verdict, note, counterpart) = match latest {
        Some((run, found)) => {
            let counterpart = counterpart(run, found.of);
            (found.measured, found.ci95, found.verdict, found.note, Some(counterpart))
        }
        None => (None, None, Standing::NotMeasured, what_would(figure), None),
    };
    let (verdict, note) = match cannot_hold {
        Some(why) => (Standing::CannotHold, why.to_owned()),
        None => (verdict, note),
    };
    Entry {
        story: story.to_owned(),
        figure: figure.id.clone(),
        says: figure.says.clone(),
        metric: figure.metric,
        unit: figure.unit.clone(),
        published: figure.value,
        measured,
        ci95,
        verdict,
        note,
        measured_by: figure.measured_by.clone(),
        audit: published
            .notes(&figure.id)
            .into_iter()
            .map(|note| note.says.clone())
            .collect(),
        counterpart,
    }
}

fn found(figure: &Figure, run: &Archived) -> Option<Found> {
    if let Some(name) = &figure.arm {
        let arm = run.results.arms.iter().find(|arm| arm.name == *name)?;
        return Some(of_arm(figure.metric, arm));
    }
    let mut claims = run.results.claims.iter();
    let claim = claims.find(|claim| claim.figure.as_ref() == Some(&figure.id))?;
    Some(Found {
        measured: claim.measured,
        ci95: claim.ci95,
        verdict: claim.verdict.into(),
        note: claim.note.clone(),
        of: claim.text.clone(),
    })
}

fn of_arm(metric: Metric, arm: &Arm) -> Found {
    Found {
        measured: arm.measure(metric),
        ci95: arm.throughput.ci95.filter(|_| metric == Metric::Throughput),
        verdict: Standing::NotComparable,
        note: "an absolute figure of another machine; the ratios of such figures are judged".to_owned(),
        of: arm.name.clone(),
    }
}

fn counterpart(run: &Archived, of: String) -> Counterpart {
    Counterpart {
        experiment: run.results.experiment.clone(),
        of,
        rounds: run.results.rounds,
        date: run.results.environment.started_at.clone(),
        environment: run.results.environment.clone(),
        folder: run.folder.display().to_string(),
    }
}

fn what_would(figure: &Figure) -> String {
    match (figure.measured_by.first(), &figure.would) {
        (Some(experiment), _) => format!("never measured here; `cargo rowlock run {experiment}` does"),
        (None, Some(would)) => format!("never measured; what would: {would}"),
        (None, None) => "never measured".to_owned(),
    }
}

#[cfg(test)]
mod tests;
