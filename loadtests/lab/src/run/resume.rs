//! What is left to do of a run that was cut off. The copy of the experiment and the stream in its folder are the truth.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::events::{self, Event, Manner, RunKey, Stamped};
use crate::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::results::Environment;
use crate::run::session::Planned;

/// A run that can be continued.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) experiment: Experiment,
    /// How it was started, to show it.
    pub(super) started: Event,
    pub(super) manner: Manner,
    /// The measurements without a result, in the order of the plan.
    pub(super) remaining: Vec<Planned>,
}

/// Reads a result folder, and refuses one that cannot be continued on this machine with these programs.
pub(super) fn look(folder: &Path, here: &Environment) -> Outcome<Unfinished> {
    let stream = events::read(folder).map_err(|error| Failure::Usage(format!("{error:#}")))?;
    let experiment = Experiment::of_results(folder)?;
    let digest = Experiment::copy_digest(folder).map_err(|error| Failure::Usage(format!("{error:#}")))?;
    unfinished(experiment, &digest, &stream, here)
        .map_err(|why| Failure::Usage(format!("{} cannot be resumed: {why}", folder.display())))
}

fn unfinished(
    experiment: Experiment,
    digest: &str,
    stream: &[Stamped],
    here: &Environment,
) -> Result<Unfinished, String> {
    let started = stream.first().map(|stamped| stamped.event.clone());
    let Some(
        ref started @ Event::RunStarted {
            schema,
            ref plan,
            ref environment,
            ref manner,
            ..
        },
    ) = started
    else {
        return Err("its stream does not say that a run was started".to_owned());
    };
    if schema != events::SCHEMA || manner.experiment_digest.is_empty() {
        return Err("it was made by an older version, which did not record what is needed for that".to_owned());
    }
    if manner.experiment_digest != digest {
        return Err("the experiment in it is not the one it was begun with; run it anew".to_owned());
    }
    let differing = differing(environment, here);
    if !differing.is_empty() {
        return Err(format!(
            "measurements made now would not be comparable: {}",
            differing.join("; ")
        ));
    }
    let states = states(stream);
    let left = |key: &RunKey| states.get(key) != Some(&State::Done);
    let numbered = plan.iter().zip(1..).filter(|(key, _)| left(key));
    let remaining: Vec<Planned> = numbered
        .map(|(key, number)| Planned {
            number,
            key: key.clone(),
        })
        .collect();
    let finished = |stamped: &Stamped| matches!(stamped.event, Event::RunFinished { completed: true });
    if remaining.is_empty() && stream.iter().any(finished) {
        return Err("it is complete; `cargo rowlock report` renders it again".to_owned());
    }
    Ok(Unfinished {
        experiment,
        started: started.clone(),
        manner: manner.clone(),
        remaining,
    })
}

/// How far a measurement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has a result.
    Done,
    /// It was cut off, or failed.
    Undone,
}

/// Of every measurement that was begun. One that was begun again counts from its new beginning.
fn states(stream: &[Stamped]) -> BTreeMap<&RunKey, State> {
    let mut states = BTreeMap::new();
    for stamped in stream {
        let (key, state) = match &stamped.event {
            Event::ArmStarted { key, .. } | Event::ArmFailed { key, .. } => (key, State::Undone),
            Event::Audit { key, .. } | Event::Refused { key, .. } => (key, State::Done),
            _ => continue,
        };
        states.insert(key, state);
    }
    states
}

/// What tells two environments apart, as `FIELD was … and is …`; when a run began is no difference.
fn differing(then: &Environment, now: &Environment) -> Vec<String> {
    let fields = |environment: &Environment| match serde_json::to_value(environment) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let now = fields(now);
    let differing = fields(then).into_iter().filter_map(|(field, was)| {
        let is = now.get(&field).filter(|is| **is != was && field != "started_at")?;
        Some(format!("{field} was {was} and is {is}"))
    });
    differing.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Audit, CheckId};

    fn key(round: u32, arm: &str) -> RunKey {
        RunKey {
            round,
            arm: arm.to_owned(),
        }
    }

    fn here() -> Environment {
        Environment {
            cpus: 2,
            rowlock: "0.1.0 (abc)".into(),
            ..Environment::default()
        }
    }

    /// Two rounds of two arms: the first done, the second failed after its audit, the third done as a refusal, the fourth
    /// cut off in the middle.
    fn stream() -> Vec<Stamped> {
        let plan = vec![key(1, "a"), key(1, "b"), key(2, "b"), key(2, "a")];
        let started = |key: RunKey| Event::ArmStarted {
            key,
            changes: Vec::new(),
        };
        let audit = |key: RunKey| Event::Audit {
            key,
            audit: Audit::default(),
        };
        let events = vec![
            Event::RunStarted {
                schema: events::SCHEMA,
                experiment: "e".into(),
                question: "?".into(),
                plan,
                duration_s: 1.0,
                warm_up_s: 1.0,
                users: 1,
                environment: Environment {
                    started_at: "yesterday".into(),
                    ..here()
                },
                manner: Manner {
                    experiment_digest: "d".into(),
                    ..Manner::default()
                },
            },
            started(key(1, "a")),
            audit(key(1, "a")),
            started(key(1, "b")),
            audit(key(1, "b")),
            Event::ArmFailed {
                key: key(1, "b"),
                reason: "a fault did not heal".into(),
            },
            started(key(2, "b")),
            Event::Refused {
                key: key(2, "b"),
                id: CheckId::FrontSpread,
            },
            started(key(2, "a")),
        ];
        events.into_iter().map(|event| Stamped { at_ms: 0, event }).collect()
    }

    fn look(stream: &[Stamped], digest: &str, here: &Environment) -> Result<Unfinished, String> {
        unfinished(Experiment::find("row-lock-demo").unwrap(), digest, stream, here)
    }

    #[test]
    fn what_failed_or_was_cut_off_is_left_in_the_order_of_the_plan_and_with_its_number() {
        let left = look(&stream(), "d", &here()).unwrap().remaining;
        let left: Vec<(usize, RunKey)> = left.into_iter().map(|each| (each.number, each.key)).collect();
        assert_eq!(left, [(2, key(1, "b")), (4, key(2, "a"))]);
        let left = look(&stream()[..3], "d", &here()).unwrap().remaining;
        assert_eq!(left.len(), 3);
    }

    #[test]
    fn a_measurement_that_was_begun_again_counts_from_there() {
        let mut stream = stream();
        let again = Event::ArmStarted {
            key: key(1, "a"),
            changes: Vec::new(),
        };
        stream.push(Stamped { at_ms: 0, event: again });
        assert_eq!(look(&stream, "d", &here()).unwrap().remaining.len(), 3);
    }

    #[test]
    fn another_experiment_machine_or_version_is_refused_with_what_differs() {
        let error = look(&stream(), "other", &here()).unwrap_err();
        assert!(error.contains("not the one it was begun with"), "{error}");
        for (other, told) in [
            (Environment { cpus: 4, ..here() }, "cpus was 2 and is 4"),
            (
                Environment {
                    rowlock: "0.1.0 (abd)".into(),
                    ..here()
                },
                "rowlock was \"0.1.0 (abc)\"",
            ),
        ] {
            let error = look(&stream(), "d", &other).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        assert!(look(&stream()[1..], "d", &here()).is_err());
    }

    #[test]
    fn a_complete_run_is_refused_and_one_that_lacks_only_its_last_line_is_not() {
        let mut stream = stream();
        stream.truncate(3);
        let Event::RunStarted { plan, .. } = &mut stream[0].event else {
            panic!("the first event is another");
        };
        plan.truncate(1);
        assert!(look(&stream, "d", &here()).unwrap().remaining.is_empty());
        stream.push(Stamped {
            at_ms: 0,
            event: Event::RunFinished { completed: true },
        });
        let error = look(&stream, "d", &here()).unwrap_err();
        assert!(error.contains("complete"), "{error}");
    }
}
