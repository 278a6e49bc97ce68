//! What runs say of an alternative by itself: two arms that differ in one axis and in nothing else.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::analysis::stats::{self, FEWEST_ROUNDS};
use crate::archive::Archived;
use crate::experiment::{Arm, Experiment};
use crate::results::Staleness;

/// A run that was made, with the experiment as it was run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(super) archived: Archived,
    pub(super) experiment: Experiment,
}

/// The last figure of an alternative.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// Throughput ÷ throughput of the arm that differs in nothing but having the axis's baseline; 1 for the baseline.
    pub(crate) throughput_ratio: f64,
    /// Absent with fewer than 4 rounds, and for the baseline.
    pub(crate) ci95: Option<[f64; 2]>,
    /// Tours a second.
    pub(crate) throughput: f64,
    /// False when an audit failed: fast, perhaps, and wrong.
    pub(crate) audit_passed: bool,
    /// How late readers were; absent where nobody changed anything.
    pub(crate) staleness: Option<Staleness>,
    pub(crate) experiment: String,
    pub(crate) arm: String,
    pub(crate) against: String,
    pub(crate) rounds: u32,
    /// RFC 3339.
    pub(crate) date: String,
    pub(crate) folder: String,
}

/// How to find the alternatives of an axis in an experiment.
pub(super) struct Axis<'a> {
    /// The variable that chooses one.
    pub(super) variable: String,
    /// What is in use where the variable is not set.
    pub(super) baseline: &'a str,
    /// Variables that only some of the alternatives take. Who has them has a database of its own as well, with what was done
    /// to it.
    pub(super) along: &'a [String],
}

/// An arm with an alternative, and the arm it is to be measured against.
struct Pair<'e> {
    alternative: String,
    arm: &'e str,
    against: &'e str,
}

impl Run {
    /// The completed runs of an archive that no fault disturbed, in its order. What cannot be read is told on standard error
    /// and left out.
    pub(crate) fn undisturbed(archive: Vec<Archived>) -> Vec<Self> {
        let completed = archive.into_iter().filter(|archived| archived.results.completed);
        let read = completed.filter_map(|archived| {
            let experiment = Experiment::of_results(&archived.folder)
                .inspect_err(|failure| eprintln!("left out: {failure}"))
                .ok()?;
            Some(Self { archived, experiment })
        });
        read.filter(|run| run.experiment.faults.is_empty()).collect()
    }
}

impl Axis<'_> {
    /// The experiment that compares the most alternatives of the axis under one load; of several the one with the fewest
    /// arms, which is about little else.
    pub(super) fn ranking<'e>(&self, shipped: &'e [Experiment]) -> Option<&'e str> {
        let compared = |experiment: &Experiment| {
            let alternatives: BTreeSet<String> = self.pairs(experiment).into_iter().map(|it| it.alternative).collect();
            alternatives.len()
        };
        let undisturbed = shipped.iter().filter(|experiment| experiment.faults.is_empty());
        let comparing = undisturbed.filter(|experiment| compared(experiment) > 0);
        let most = comparing.min_by_key(|experiment| {
            let others = experiment.arms.len();
            (std::cmp::Reverse(compared(experiment)), others, &experiment.name)
        });
        most.map(|experiment| experiment.name.as_str())
    }

    /// The experiment to run for a figure of the alternative: the ranking one if it has an arm for it.
    pub(super) fn measured_by<'e>(
        &self,
        alternative: &str,
        ranking: Option<&str>,
        shipped: &'e [Experiment],
    ) -> Option<&'e str> {
        let undisturbed = shipped.iter().filter(|experiment| experiment.faults.is_empty());
        let measuring = undisturbed.filter(|experiment| self.pair(alternative, experiment).is_some());
        let first = measuring.min_by_key(|experiment| (Some(experiment.name.as_str()) != ranking, &experiment.name));
        first.map(|experiment| experiment.name.as_str())
    }

    /// What the latest run says of the alternative. Figures of the ranking experiment come first, so that those of an axis can
    /// be held against each other; then those with an interval.
    pub(super) fn measured(&self, alternative: &str, ranking: Option<&str>, runs: &[Run]) -> Option<Measured> {
        let mut figures: Vec<Measured> = runs.iter().filter_map(|run| self.figure(alternative, run)).collect();
        figures.sort_by_key(|figure| {
            let elsewhere = Some(figure.experiment.as_str()) != ranking;
            (elsewhere, (figure.rounds as usize) < FEWEST_ROUNDS)
        });
        figures.into_iter().next()
    }

    fn figure(&self, alternative: &str, run: &Run) -> Option<Measured> {
        let pair = self.pair(alternative, &run.experiment)?;
        let results = &run.archived.results;
        let find = |name: &str| results.arms.iter().find(|arm| arm.name == name);
        let (arm, against) = (find(pair.arm)?, find(pair.against)?);
        let (mine, theirs) = (&arm.throughput.rounds, &against.throughput.rounds);
        // Rounds stand in their order and are pairs only where none is missing.
        if mine.len() != theirs.len() {
            return None;
        }
        let rounds: Vec<(f64, f64)> = mine.iter().copied().zip(theirs.iter().copied()).collect();
        let ratio = stats::ratio(&rounds)?;
        Some(Measured {
            throughput_ratio: ratio.mean,
            ci95: ratio.ci95.filter(|_| pair.arm != pair.against),
            throughput: arm.throughput.mean,
            audit_passed: arm.audit.passed,
            staleness: arm.staleness.clone(),
            experiment: results.experiment.clone(),
            arm: pair.arm.to_owned(),
            against: pair.against.to_owned(),
            rounds: results.rounds,
            date: results.environment.started_at.clone(),
            folder: run.archived.folder.display().to_string(),
        })
    }

    fn pair<'e>(&self, alternative: &str, experiment: &'e Experiment) -> Option<Pair<'e>> {
        self.pairs(experiment)
            .into_iter()
            .find(|pair| pair.alternative == alternative)
    }

    /// Every arm that has one to be measured against, in the order of the experiment; the baseline first and against itself.
    /// An arm with another schema says what that does, and not what the alternative does.
    fn pairs<'e>(&self, experiment: &'e Experiment) -> Vec<Pair<'e>> {
        let as_shipped = experiment
            .arms
            .iter()
            .filter(|arm| experiment.schema_of(arm).is_empty());
        let arms: Vec<&Arm> = as_shipped.collect();
        let mut pairs: Vec<Pair<'e>> = Vec::new();
        for &arm in &arms {
            let alternative = self.alternative(experiment, arm);
            if alternative == self.baseline {
                continue;
            }
            let alike = self.without(experiment, arm);
            let against = arms.iter().find(|other| {
                self.alternative(experiment, other) == self.baseline && self.without(experiment, other) == alike
            });
            pairs.extend(against.map(|against| Pair {
                alternative: alternative.to_owned(),
                arm: &arm.name,
                against: &against.name,
            }));
        }
        if let Some(first) = pairs.first() {
            let baseline = Pair {
                alternative: self.baseline.to_owned(),
                arm: first.against,
                against: first.against,
            };
            pairs.insert(0, baseline);
        }
        pairs
    }

    fn alternative<'e>(&'e self, experiment: &'e Experiment, arm: &'e Arm) -> &'e str {
        let settings = arm.settings.get(&self.variable);
        let chosen = settings.or_else(|| experiment.common.settings.get(&self.variable));
        chosen.map_or(self.baseline, String::as_str)
    }

    /// The arm without its name and its place on the axis, with all of its settings: two that are equal differ in nothing else.
    fn without(&self, experiment: &Experiment, arm: &Arm) -> Arm {
        let mut settings = experiment.common.settings.clone();
        settings.extend(arm.settings.clone());
        settings.remove(&self.variable);
        let mut without = Arm {
            name: String::new(),
            settings,
            ..arm.clone()
        };
        if !self.along.is_empty() {
            without.settings.retain(|variable, _| !self.along.contains(variable));
            without.act.clear();
        }
        without
    }
}
