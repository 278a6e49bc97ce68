//! What was looked at before the measurements of an arm, and how they began, over all rounds.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use crate::events::RunKey;
use crate::experiment::Experiment;
use crate::results::{CheckId, PreflightCheck, Refused, WarmUps};

/// The checks of all rounds as one: a check has passed when it has in every round, and says what it said when it did not.
pub(super) fn merge(runs: &[&Evidence]) -> Vec<PreflightCheck> {
    let mut checks: BTreeMap<CheckId, PreflightCheck> = BTreeMap::new();
    for check in runs.iter().flat_map(|run| &run.preflight) {
        let kept = checks.entry(check.id).or_insert_with(|| check.clone());
        if kept.ok {
            kept.clone_from(check);
        }
    }
    checks.into_values().collect()
}

/// The warm-ups of all rounds; `None` when none of them was told.
pub(super) fn warm_ups(runs: &[&Evidence]) -> Option<WarmUps> {
    let told: Vec<_> = runs.iter().filter_map(|run| run.warm_up.as_ref()).collect();
    (!told.is_empty()).then(|| WarmUps {
        seconds: told.iter().map(|warm_up| warm_up.seconds).collect(),
        steady: told.iter().all(|warm_up| warm_up.steady),
        says: told
            .iter()
            .filter(|warm_up| !warm_up.steady)
            .map(|warm_up| warm_up.says.clone())
            .collect(),
    })
}

/// The arms that were stopped as they have to be, in the order of the experiment.
pub(super) fn refused(experiment: &Experiment, evidence: &BTreeMap<RunKey, Evidence>) -> Vec<Refused> {
    let refused = experiment.arms.iter().filter_map(|arm| {
        let mut runs = evidence.iter().filter(|(key, _)| key.arm == arm.name);
        runs.find_map(|(_, run)| {
            let id = run.refused?;
            let check = run.preflight.iter().find(|check| check.id == id);
            Some(Refused {
                arm: arm.name.clone(),
                changes: run.changes.clone(),
                id,
                says: check.map(|check| check.says.clone()).unwrap_or_default(),
            })
        })
    });
    refused.collect()
}
