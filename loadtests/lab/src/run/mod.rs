//! The orchestrator: from an experiment to a result folder.
//!
//! A run is a plan of measurements over one stack that stays up, and a stream of events about them. What is shown and
//! concluded is read from the stream, so a run that is cut off still leaves a report of what it got.

mod drain;
mod environment;
mod faults;
mod last_change;
mod measure;
mod plan;
mod preflight;
mod progress;
mod resume;
mod session;
mod stream;
mod target;
mod warm_up;

use std::path::{Path, PathBuf};

use chrono::Local;
use deploy::{PortBase, Stack, Topology};

use crate::describe::Descriptions;
use crate::events::{Event, Manner, Stamped};
use crate::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::results::{RESULTS_FILE, Results, Verdict};
use crate::{analysis, archive, events, report};

pub(crate) use target::{CLIENT, create_tour};

use resume::Unfinished;
use session::{End, Planned, Session};
use stream::Stream;

/// Stack of all experiments. Its state is kept between runs, so that the next one starts warm.
pub(crate) const STACK: &str = "lab";

/// How a run is made, beyond what the experiment says.
#[derive(Debug)]
pub(crate) struct Options {
    /// Name of the stack that is brought up for it.
    pub(crate) stack: String,
    /// Result folder; a new one under `.rowlock/results` when absent.
    pub(crate) out: Option<PathBuf>,
    /// Look at the lock table often.
    pub(crate) fast_locks: bool,
    /// End each load when its last fault was recovered from, and readers were owed what was written then.
    pub(crate) until_recovered: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stack: STACK.to_owned(),
            out: None,
            fast_locks: false,
            until_recovered: false,
        }
    }
}

/// A run that came to results, complete or not.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) folder: PathBuf,
    pub(crate) results: Results,
}

/// Runs the experiment on a stack of its own and writes the result folder.
pub(crate) async fn run(experiment: &Experiment, options: Options) -> Outcome<Done> {
    let mut experiment = experiment.clone();
    experiment.draw_seed(rand::random());
    let base = base(options.stack);
    check_settings(&experiment, &base).await?;

    let folder = create_folder(&experiment, options.out)?;
    experiment.write_copy(&folder)?;
    let manner = Manner {
        order: experiment.order,
        seed: experiment.seed,
        experiment_digest: Experiment::copy_digest(&folder)?,
        fast_locks: options.fast_locks,
        until_recovered: options.until_recovered,
    };
    let plan = plan::measurements(&experiment);
    let mut stream = Stream::open(&folder)?;
    stream.emit(Event::RunStarted {
        schema: events::SCHEMA,
        experiment: experiment.name.clone(),
        question: experiment.question.clone(),
        plan: plan.clone(),
        duration_s: experiment.duration.as_secs_f64(),
        warm_up_s: experiment.warm_up.as_secs_f64(),
        users: experiment.users,
        environment: environment::look(base.replicas.keys())?,
        manner: manner.clone(),
    })?;
    let planned: Vec<Planned> = plan
        .into_iter()
        .zip(1..)
        .map(|(key, number)| Planned { number, key })
        .collect();
    let session = Session {
        experiment: &experiment,
        planned: &planned,
        base: &base,
        manner: &manner,
        folder,
    };
    measure(session, stream).await
}

/// Makes the measurements that a run which was cut off has no result for, on a stack of the given name.
pub(crate) async fn resume(folder: PathBuf, stack: String) -> Outcome<Done> {
    let base = base(stack);
    let here = environment::look(base.replicas.keys())?;
    let Unfinished {
        experiment,
        started,
        manner,
        remaining,
    } = resume::look(&folder, &here)?;
    check_settings(&experiment, &base).await?;
    let mut stream = Stream::open(&folder)?;
    stream.show(&started);
    stream.emit(Event::Resumed {
        remaining: remaining.iter().map(|planned| planned.key.clone()).collect(),
    })?;
    let session = Session {
        experiment: &experiment,
        planned: &remaining,
        base: &base,
        manner: &manner,
        folder,
    };
    measure(session, stream).await
}

async fn measure(session: Session<'_>, mut stream: Stream) -> Outcome<Done> {
    let end = session.run(&mut stream).await;
    stream.emit(Event::RunFinished {
        completed: matches!(end, Ok(End::Completed)),
    })?;
    drop(stream);
    let folder = session.folder;
    if end? == End::Interrupted {
        eprintln!(
            "interrupted; what was measured until now is in {0}, and `cargo rowlock run --resume {0}` goes on",
            folder.display()
        );
    }
    let results = conclude(&folder, session.experiment, &events::read(&folder)?)?;
    Ok(Done { folder, results })
}

fn base(stack: String) -> Topology {
    Topology {
        port_base: PortBase::Free,
        ..Topology::standard(stack)
    }
}

/// Analyses a stream and writes results and report into `folder`.
pub(crate) fn conclude(folder: &Path, experiment: &Experiment, events: &[Stamped]) -> Outcome<Results> {
    let results = analysis::analyse(experiment, events)?;
    let path = folder.join(RESULTS_FILE);
    let text = serde_json::to_string_pretty(&results).map_err(|error| Failure::Gate(error.to_string()))?;
    std::fs::write(&path, text).map_err(|error| Failure::Gate(format!("cannot write {}: {error}", path.display())))?;
    report::write(folder, experiment, &results, events)?;
    Ok(results)
}

/// What makes a finished run fail: measurements without a result, broken invariants, `must` claims not reproduced.
pub(crate) fn gates(results: &Results) -> Outcome {
    let mut broken: Vec<String> = results.failures.clone();
    if !results.completed && broken.is_empty() {
        broken.push("the run was cut off".to_owned());
    }
    for claim in results
        .claims
        .iter()
        .filter(|claim| claim.must && claim.verdict == Verdict::NotReproduced)
    {
        broken.push(format!("claim not reproduced: {} ({})", claim.text, claim.note));
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Failure::Gate(broken.join("\n         ")))
    }
}

/// Settings of every arm against what the services say they know, before anything is started.
async fn check_settings(experiment: &Experiment, base: &Topology) -> Outcome {
    let descriptions = Descriptions::ask(base.replicas.keys()).await?;
    for arm in &experiment.arms {
        let topology = plan::topology(experiment, arm, base);
        if let Some(service) = topology
            .replicas
            .keys()
            .find(|service| !base.replicas.contains_key(*service))
        {
            let known: Vec<&str> = base.replicas.keys().map(String::as_str).collect();
            return Err(Failure::Usage(format!(
                "arm `{}`: there is no service `{service}`; services are: {}",
                arm.name,
                known.join(", ")
            )));
        }
        let of_arm = |failure: Failure| match failure {
            Failure::Usage(text) => Failure::Usage(format!("arm `{}`: {text}", arm.name)),
            other => other,
        };
        descriptions.check(&topology.settings).map_err(of_arm)?;
        Stack::check(&topology).await.map_err(|error| of_arm(error.into()))?;
    }
    Ok(())
}

fn create_folder(experiment: &Experiment, out: Option<PathBuf>) -> Outcome<PathBuf> {
    let folder = out.unwrap_or_else(|| {
        let time = Local::now().format("%Y%m%d-%H%M%S");
        archive::default_root().join(format!("{}-{time}", experiment.name))
    });
    if folder.join(events::FILE).exists() {
        return Err(Failure::Usage(format!(
            "{} already holds the results of a run; give another folder with --out, or go on with --resume",
            folder.display()
        )));
    }
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::Usage(format!("cannot create {}: {error}", folder.display())))?;
    Ok(folder)
}
