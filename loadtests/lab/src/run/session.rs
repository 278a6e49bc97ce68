//! The measurements of a run, one after the other, over one stack that stays up.

use std::path::PathBuf;
use std::time::Duration;

use deploy::{Stack, Topology};

use super::measure::Bench;
use super::plan;
use super::stream::Stream;
use crate::events::{Event, Manner, RunKey};
use crate::experiment::{Arm, Experiment};
use crate::failure::{Failure, Outcome};
use crate::probes::Intervals;

/// Between two looks at the lock table when asked to look often.
const FAST_LOCKS: Duration = Duration::from_millis(250);

/// A measurement that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    /// Its place in the plan, counted from 1.
    pub(super) number: usize,
    pub(super) key: RunKey,
}

/// What is to be measured, and how.
pub(super) struct Session<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) planned: &'a [Planned],
    /// Name and ports of the stack.
    pub(super) base: &'a Topology,
    pub(super) manner: &'a Manner,
    /// Result folder.
    pub(super) folder: PathBuf,
}

/// How the measuring ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

impl Session<'_> {
    /// Brings the stack up, measures, and brings it down again, whatever happens in between.
    pub(super) async fn run(&self, stream: &mut Stream) -> Outcome<End> {
        let Some(first) = self.planned.first() else {
            return Ok(End::Completed);
        };
        let mut interrupted = Interrupt::listen()?;
        let first = plan::topology(self.experiment, self.arm(&first.key), self.base);
        // Cut off while it starts, the stack is ended by its own drop.
        let mut note = |line: &str| stream.note(line);
        let mut stack = tokio::select! {
            stack = Stack::up(first, &mut note) => stack?,
            () = interrupted.wait() => return Ok(End::Interrupted),
        };
        let end = tokio::select! {
            measured = self.measure(&mut stack, stream) => measured.map(|()| End::Completed),
            () = interrupted.wait() => Ok(End::Interrupted),
        };
        stream.note("ending the stack");
        let down = stack.down().await;
        let end = end?;
        down?;
        Ok(end)
    }

    /// A measurement that fails is recorded and does not keep the others from being made.
    async fn measure(&self, stack: &mut Stack, stream: &mut Stream) -> Outcome {
        let intervals = intervals(self.manner.fast_locks);
        for (index, Planned { number, key }) in self.planned.iter().enumerate() {
            let arm = self.arm(key);
            // The first arm finds the stack as it was brought up for it.
            let topology = (index > 0).then(|| plan::topology(self.experiment, arm, self.base));
            stream.emit(Event::ArmStarted {
                key: key.clone(),
                changes: plan::changes(arm),
            })?;
            let bench = Bench {
                experiment: self.experiment,
                key,
                arm_load: self.experiment.load_of(arm),
                faults: self.experiment.faults_of(&arm.name),
                expected: self.experiment.expected_preflight(arm),
                intervals: &intervals,
                folder: &self.folder,
                label: format!("{number:03}"),
                until_recovered: self.manner.until_recovered,
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

    fn arm(&self, key: &RunKey) -> &Arm {
        let arm = self.experiment.arms.iter().find(|arm| arm.name == key.arm);
        arm.expect("the plan was made from these arms")
    }
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
