//! The orchestrator: from an experiment to a result folder.
//!
//! A run is a plan of measurements over one stack that stays up, and a stream of events about them. What is shown and
//! concluded is read from the stream, so a run that is cut off still leaves a report of what it got.

mod drain;
mod environment;
mod faults;
mod measure;
mod plan;
mod preflight;
mod progress;
mod stream;
mod target;

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::Local;
use deploy::{PortBase, Stack, Topology};

use crate::describe::Descriptions;
use crate::events::{Event, RunKey, Stamped};
use crate::experiment::Experiment;
use crate::failure::{Failure, Outcome};
use crate::probes::Intervals;
use crate::results::{RESULTS_FILE, Results, Verdict};
use crate::{analysis, archive, events, report};

pub(crate) use target::{CLIENT, create_tour};

use measure::Bench;
use stream::Stream;

/// Stack of all experiments. Its state is kept between runs, so that the next one starts warm.
pub(crate) const STACK: &str = "lab";
/// Between two looks at the lock table when asked to look often.
const FAST_LOCKS: Duration = Duration::from_millis(250);

/// How a run is made, beyond what the experiment says.
#[derive(Debug)]
pub(crate) struct Options {
    /// Name of the stack that is brought up for it.
    pub(crate) stack: String,
    /// Result folder; a new one under `.rowlock/results` when absent.
    pub(crate) out: Option<PathBuf>,
    /// Look at the lock table often.
    pub(crate) fast_locks: bool,
    /// End each load when its last fault was recovered from.
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

/// How every measurement of a run is made.
struct Manner {
    intervals: Intervals,
    until_recovered: bool,
    /// Result folder.
    folder: PathBuf,
}

/// A run that came to results, complete or not.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) folder: PathBuf,
    pub(crate) results: Results,
}

/// How the measuring ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Completed,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

/// Runs the experiment on a stack of its own and writes the result folder.
pub(crate) async fn run(experiment: &Experiment, options: Options) -> Outcome<Done> {
    let base = Topology {
        port_base: PortBase::Free,
        ..Topology::standard(options.stack)
    };
    let plan = plan::measurements(experiment);
    check_settings(experiment, &base).await?;

    let folder = create_folder(experiment, options.out)?;
    experiment.write_copy(&folder)?;
    let mut stream = Stream::open(&folder)?;
    stream.emit(Event::RunStarted {
        schema: events::SCHEMA,
        experiment: experiment.name.clone(),
        question: experiment.question.clone(),
        plan: plan.clone(),
        duration_s: experiment.duration.as_secs_f64(),
        warm_up_s: experiment.warm_up.as_secs_f64(),
        users: experiment.users,
        environment: environment::look(),
    })?;

    let manner = Manner {
        intervals: intervals(options.fast_locks),
        until_recovered: options.until_recovered,
        folder: folder.clone(),
    };
    let end = session(experiment, &plan, &base, &manner, &mut stream).await;
    stream.emit(Event::RunFinished {
        completed: matches!(end, Ok(End::Completed)),
    })?;
    drop(stream);
    if end? == End::Interrupted {
        eprintln!("interrupted; what was measured until now is in {}", folder.display());
    }
    let results = conclude(&folder, experiment, &events::read(&folder)?)?;
    Ok(Done { folder, results })
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

/// Brings the stack up, measures, and brings it down again, whatever happens in between.
async fn session(
    experiment: &Experiment,
    plan: &[RunKey],
    base: &Topology,
    manner: &Manner,
    stream: &mut Stream,
) -> Outcome<End> {
    let mut interrupted = Interrupt::listen()?;
    let first = plan::topology(experiment, &experiment.arms[0], base);
    // Cut off while it starts, the stack is ended by its own drop.
    let mut note = |line: &str| stream.note(line);
    let mut stack = tokio::select! {
        stack = Stack::up(first, &mut note) => stack?,
        () = interrupted.wait() => return Ok(End::Interrupted),
    };
    let end = tokio::select! {
        measured = measure_all(&mut stack, experiment, plan, base, manner, stream) => measured.map(|()| End::Completed),
        () = interrupted.wait() => Ok(End::Interrupted),
    };
    stream.note("ending the stack");
    let down = stack.down().await;
    let end = end?;
    down?;
    Ok(end)
}

/// A measurement that fails is recorded and does not keep the others from being made.
async fn measure_all(
    stack: &mut Stack,
    experiment: &Experiment,
    plan: &[RunKey],
    base: &Topology,
    manner: &Manner,
    stream: &mut Stream,
) -> Outcome {
    for (index, key) in plan.iter().enumerate() {
        let arm = experiment.arms.iter().find(|arm| arm.name == key.arm);
        let arm = arm.expect("the plan was made from these arms");
        // The first arm finds the stack as it was brought up for it.
        let topology = (index > 0).then(|| plan::topology(experiment, arm, base));
        stream.emit(Event::ArmStarted {
            key: key.clone(),
            changes: plan::changes(arm),
        })?;
        let bench = Bench {
            experiment,
            key,
            arm_load: experiment.load_of(arm),
            intervals: &manner.intervals,
            folder: &manner.folder,
            label: format!("{:03}", index + 1),
            until_recovered: manner.until_recovered,
        };
        if let Err(error) = bench.measure(stack, topology, stream).await {
            stream.emit(Event::ArmFailed {
                key: key.clone(),
                reason: format!("{error:#}"),
            })?;
        }
    }
    Ok(())
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
        descriptions
            .check(&topology.settings)
            .map_err(|failure| match failure {
                Failure::Usage(text) => Failure::Usage(format!("arm `{}`: {text}", arm.name)),
                other => other,
            })?;
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
            "{} already holds the results of a run; give another folder with --out",
            folder.display()
        )));
    }
    std::fs::create_dir_all(&folder)
        .map_err(|error| Failure::Usage(format!("cannot create {}: {error}", folder.display())))?;
    Ok(folder)
}

fn intervals(fast_locks: bool) -> Intervals {
    let published = Intervals::default();
    if fast_locks {
        Intervals {
            locks: FAST_LOCKS,
            ..published
        }
    } else {
        published
    }
}

/// Ctrl-C and SIGTERM.
struct Interrupt {
    terminate: tokio::signal::unix::Signal,
}

impl Interrupt {
    fn listen() -> Outcome<Self> {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map(|terminate| Self { terminate })
            .map_err(|error| Failure::Missing(format!("signals cannot be received: {error}")))
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
