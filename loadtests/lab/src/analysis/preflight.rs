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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyse;
    use crate::analysis::tests::summary;
    use crate::events::{Event, LockSample, Manner, SCHEMA, Sample, Stamped};
    use crate::results::{Audit, Environment};

    fn key(arm: &str) -> RunKey {
        RunKey {
            round: 1,
            arm: arm.to_owned(),
        }
    }

    fn check(id: CheckId, ok: bool) -> PreflightCheck {
        PreflightCheck {
            id,
            ok,
            says: format!("{id} {ok}"),
        }
    }

    fn preflight(arm: &str, checks: &[PreflightCheck]) -> Event {
        Event::Preflight {
            key: key(arm),
            checks: checks.to_vec(),
        }
    }

    fn started(arm: &str) -> Event {
        Event::ArmStarted {
            key: key(arm),
            changes: vec!["a=b".into()],
        }
    }

    /// A measurement that came to its end, with a sample in its long warm-up and one after it.
    fn measured(arm: &str) -> Vec<Event> {
        let sample = |t_s| Event::Sample {
            key: key(arm),
            t_s,
            sample: Sample::Locks(LockSample::default()),
        };
        vec![
            started(arm),
            preflight(arm, &[check(CheckId::QueueEmpty, true)]),
            sample(3.0),
            Event::WarmUp {
                key: key(arm),
                detected_s: 5.0,
                steady: false,
                says: "never".into(),
            },
            sample(6.0),
            Event::Load {
                key: key(arm),
                load: Box::new(summary(10.0)),
            },
            Event::Audit {
                key: key(arm),
                audit: Audit {
                    passed: true,
                    ..Audit::default()
                },
            },
        ]
    }

    fn stream(arms: &[&str], events: Vec<Event>) -> Vec<Stamped> {
        let begin = Event::RunStarted {
            schema: SCHEMA,
            experiment: "made-by-hand".into(),
            question: "?".into(),
            plan: arms.iter().map(|arm| key(arm)).collect(),
            duration_s: 10.0,
            warm_up_s: 2.0,
            users: 10,
            environment: Environment::default(),
            manner: Manner::default(),
        };
        let events = std::iter::once(begin).chain(events);
        let end = Event::RunFinished { completed: true };
        events.chain([end]).map(|event| Stamped { at_ms: 0, event }).collect()
    }

    fn experiment() -> Experiment {
        let mut experiment = Experiment::find("balancer-does-not-spread").unwrap();
        let names = ["stopped", "measured"];
        for (arm, name) in experiment.arms.iter_mut().zip(names) {
            arm.name = name.to_owned();
        }
        experiment
    }

    #[test]
    fn an_arm_that_is_stopped_as_it_has_to_be_is_a_result_and_no_failure() {
        let wrong = [check(CheckId::ConfigDigest, true), check(CheckId::FrontSpread, false)];
        let mut events = vec![started("stopped"), preflight("stopped", &wrong)];
        events.push(Event::Refused {
            key: key("stopped"),
            id: CheckId::FrontSpread,
        });
        events.extend(measured("measured"));
        let results = analyse(&experiment(), &stream(&["stopped", "measured"], events)).unwrap();
        assert!(results.completed, "{:?}", results.failures);
        let refused = Refused {
            arm: "stopped".into(),
            changes: vec!["a=b".into()],
            id: CheckId::FrontSpread,
            says: "front-spread false".into(),
        };
        assert_eq!(results.refused, [refused]);
        assert_eq!(results.arms.len(), 1);
        assert_eq!(results.arms[0].preflight, [check(CheckId::QueueEmpty, true)]);
    }

    #[test]
    fn what_was_sampled_in_a_warm_up_that_took_longer_does_not_count() {
        let results = analyse(&experiment(), &stream(&["measured"], measured("measured"))).unwrap();
        assert_eq!(results.arms[0].locks.samples, 1);
        let warm_up = results.arms[0].warm_up.clone().unwrap();
        assert_eq!((warm_up.seconds, warm_up.steady), (vec![5.0], false));
        assert_eq!(warm_up.says, ["never"]);
    }

    #[test]
    fn a_measurement_that_failed_and_was_made_again_is_no_failure() {
        let failed = Event::ArmFailed {
            key: key("measured"),
            reason: "it was cut off".into(),
        };
        let mut events = vec![started("measured"), failed];
        let results = analyse(&experiment(), &stream(&["measured"], events.clone())).unwrap();
        assert!(results.failures[0].contains("it was cut off"), "{:?}", results.failures);
        events.extend(measured("measured"));
        let results = analyse(&experiment(), &stream(&["measured"], events)).unwrap();
        assert!(results.completed, "{:?}", results.failures);
    }

    #[test]
    fn a_check_that_failed_in_one_round_has_failed() {
        let rounds = [true, false, true].map(|ok| {
            let mut run = Evidence::default();
            run.preflight.push(check(CheckId::RoundTrip, ok));
            run
        });
        let runs: Vec<&Evidence> = rounds.iter().collect();
        assert_eq!(merge(&runs), [check(CheckId::RoundTrip, false)]);
        assert_eq!(warm_ups(&runs), None);
    }
}
