//! One measurement: one arm in one round.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::{LinkName, Stack, Topology};
use load::{Handle, HttpTarget, Second, Spread, Summary};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::audit::{self, Auditor, Expected, Ledger, Outage};
use crate::events::{Event, FaultState, Phase, RunKey, now_ms};
use crate::experiment::{ArmLoad, Experiment, FaultSpec};
use crate::facts::Facts;
use crate::probes::{Intervals, Late, Observation, Probes};
use crate::results::CheckId;
use crate::run::drain;
use crate::run::faults::{Scene, Turn};
use crate::run::preflight::{self, Verdict};
use crate::run::stream::Stream;
use crate::run::target;
use crate::run::warm_up::{Ended, WarmUp};

/// What a measurement needs to know beside the stack it is made on.
pub(super) struct Bench<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) key: &'a RunKey,
    pub(super) arm_load: ArmLoad,
    /// What the arm suffers under load, and at its last changes.
    pub(super) faults: Vec<FaultSpec>,
    /// The preflight check that has to stop it, if one has to.
    pub(super) expected: Option<CheckId>,
    pub(super) intervals: &'a Intervals,
    /// Result folder.
    pub(super) folder: &'a Path,
    /// Tells this measurement's files in the folder from the others'.
    pub(super) label: String,
    /// The load ends when the last fault was recovered from, and not only after its duration.
    pub(super) until_recovered: bool,
}

/// What became of a load and its faults.
struct Loaded {
    began: Instant,
    summary: Summary,
    /// Requests that were repeated.
    repeated: u64,
    outages: Vec<Outage>,
    /// Faults that failed, or whose recovery the load did not live to see.
    failed: Vec<String>,
    /// Probes that look once more when nothing is under way.
    late: Late,
}

/// What the faults of a load have come to so far.
#[derive(Default)]
struct Course {
    /// Faults that are over.
    over: usize,
    /// When the last one was felt, milliseconds since the Unix epoch.
    felt_ms: u64,
    outages: Vec<Outage>,
    failed: Vec<String>,
}

/// A moment by the wall clock, milliseconds since the Unix epoch.
fn wall_ms(at: Instant) -> u64 {
    now_ms().saturating_sub(u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX))
}

impl Bench<'_> {
    /// Brings the stack to `topology` (a fresh stack may be there already), loads it, and audits what the load left
    /// behind.
    ///
    /// # Errors
    /// The arm could not be measured; a violated invariant is a result and no error, and so is an arm that preflight stops
    /// as it has to.
    pub(super) async fn measure(
        &self,
        stack: &mut Stack,
        topology: Option<Topology>,
        stream: &mut Stream,
    ) -> anyhow::Result<()> {
        stream.phase(self.key, Phase::Switch)?;
        if let Some(topology) = topology {
            stack.switch(topology, &mut |line| stream.note(line)).await?;
        }
        if !self.preflight(stack, stream).await? {
            return Ok(());
        }
        stream.emit(Event::Preset {
            key: self.key.clone(),
            not_in_force: stack.postgres_not_in_force().await?,
        })?;
        stream.emit(Event::GivesUp {
            key: self.key.clone(),
            says: Facts::of(stack).gives_up(),
        })?;

        // That of the experiment: the arms' messages have to cost the same.
        let crash = !self.experiment.faults.is_empty();
        let clients = target::clients(stack, &self.arm_load)?;
        let mut auditor = Auditor::begin(stack, clients, self.folder, &self.label, crash).await?;
        let ledger = auditor.ledger();
        let tours = target::create_tour(stack, self.experiment, &self.arm_load, Some(&ledger))?;
        let changes = target::changes(stack, self.experiment, &self.arm_load, &ledger)?;
        let last_changes = target::last_changes(
            stack,
            self.experiment,
            &self.arm_load,
            self.at_last_change().count(),
            &ledger,
        )?;
        let Loaded {
            began,
            summary,
            repeated,
            mut outages,
            mut failed,
            late,
        } = self.load(stack, tours, ledger, stream).await?;
        auditor.loaded();
        let unanswered = if summary.failures.is_empty() && summary.abandoned == 0 {
            Duration::ZERO
        } else {
            target::TIMEOUT
        };
        stream.emit(Event::Load {
            key: self.key.clone(),
            load: Box::new(summary),
        })?;

        let outlived = self.last_changes(stack, &auditor, &last_changes, began, stream).await?;
        outages.extend(outlived.outages);
        failed.extend(outlived.failed);
        let repeated = repeated + last_changes.iter().map(HttpTarget::repeated).sum::<u64>();

        stream.phase(self.key, Phase::Drain)?;
        drain::wait(stack).await?;
        for observation in late.last().await {
            self.observed(observation, stream)?;
        }
        stream.phase(self.key, Phase::Audit)?;
        let expected = Expected {
            rows_per_tour: Some(self.experiment.rows_per_tour),
            unanswered,
            repeated,
            outages,
        };
        let audit = auditor
            .finish(stack, &expected, &changes)
            .await
            .context("the audit could not be made")?;
        stream.emit(Event::Audit {
            key: self.key.clone(),
            audit,
        })?;

        anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
        if let Some(exit) = stack.exited().first() {
            anyhow::bail!(
                "{} ended during the measurement ({}):\n{}",
                exit.process.name,
                exit.status,
                exit.tail
            );
        }
        Ok(())
    }

    /// Looks whether the stack is what the arm says; false when the measurement is not to be made.
    ///
    /// # Errors
    /// A check failed, or the one that should have did not.
    async fn preflight(&self, stack: &Stack, stream: &mut Stream) -> anyhow::Result<bool> {
        let scene = preflight::Scene::of(stack)?;
        let checks = scene.check().await;
        if let Some(measured) = scene.database_round_trip() {
            let asked = stack.intended_rtt(LinkName::Db).unwrap_or_default();
            stream.emit(Event::RoundTrip {
                key: self.key.clone(),
                asked_ms: asked.as_secs_f64() * 1000.0,
                measured_ms: measured.as_secs_f64() * 1000.0,
            })?;
        }
        let verdict = preflight::judge(&checks, self.expected);
        stream.emit(Event::Preflight {
            key: self.key.clone(),
            checks,
        })?;
        match verdict {
            Verdict::Go => Ok(true),
            Verdict::Refused(id) => {
                stream.emit(Event::Refused {
                    key: self.key.clone(),
                    id,
                })?;
                Ok(false)
            }
            Verdict::Stop(why) => anyhow::bail!(why),
        }
    }

    /// The load with the probes beside it; what both say goes into the stream as it comes.
    async fn load(
        &self,
        stack: &Stack,
        target: Spread,
        ledger: Arc<Ledger>,
        stream: &mut Stream,
    ) -> anyhow::Result<Loaded> {
        let Experiment { warm_up, duration, .. } = *self.experiment;
        let shape = self
            .arm_load
            .shape(self.experiment.seed.unwrap_or_default(), self.key.round);
        let mut shape = shape.warm_up(warm_up).duration(duration);
        let mut warming = Some(WarmUp::of(self.experiment)).filter(|_| !warm_up.is_zero());
        if let Some(most) = warming.as_ref().and_then(WarmUp::most) {
            shape = shape.warm_up_max(most);
        }
        let (second, mut seconds) = mpsc::unbounded_channel();
        let (sink, mut observations) = mpsc::unbounded_channel();

        let mut late = Late::default();
        let mut probes = Some(
            Probes::start(stack, self.intervals, sink)
                .await
                .context("the probes did not start")?,
        );
        let began = Instant::now();
        let warm_by = began + warming.as_ref().map_or(Duration::ZERO, WarmUp::bound);
        let mut ends = warm_by + duration;
        stream.phase(self.key, if warming.is_some() { Phase::WarmUp } else { Phase::Load })?;
        let target = Arc::new(target);
        let (tell, mut turns) = mpsc::unbounded_channel();
        let scene = Scene {
            stack,
            target: Arc::clone(&target),
            ledger,
            began,
            turns: tell,
        };
        let handle = Handle::default();
        let touch = Facts::of(stack).promise("touch").unwrap_or_default();
        let playing = async {
            scene.play(&self.faults).await;
            if self.until_recovered {
                sleep(audit::owed_after(&touch)).await;
                handle.stop();
            }
        };
        let load = load::run_with(target, &shape, &handle, |each| {
            // The receiver lives as long as this function.
            let _ = second.send(each.clone());
        });
        tokio::pin!(load, playing);
        let mut played = self.faults.is_empty();
        let mut course = Course::default();
        let summary = loop {
            tokio::select! {
                ended = &mut load => break ended?,
                Some(second) = seconds.recv() => {
                    let warm = warming.as_mut().and_then(|warming| warming.see(&second));
                    self.second(second, stream)?;
                    if let Some(ended) = warm {
                        handle.begin_window();
                        warming = None;
                        ends = Instant::now() + duration;
                        self.warm(began, ended, stream)?;
                    }
                }
                Some(observation) = observations.recv() => self.observed(observation, stream)?,
                () = &mut playing, if !played => played = true,
                Some(turn) = turns.recv() => self.turned(turn, began, &mut course, stream)?,
                () = sleep_until(warm_by), if warming.is_some() => {
                    if let Some(warming) = warming.take() {
                        self.warm(began, warming.bounded(), stream)?;
                    }
                }
                // Requests that outlast the window are waited for, but what the probes would see then is another load.
                () = sleep_until(ends), if probes.is_some() => {
                    if let Some(probes) = probes.take() {
                        late = probes.stop().await;
                    }
                }
            }
        };
        if let Some(probes) = probes {
            late = probes.stop().await;
        }
        while let Ok(second) = seconds.try_recv() {
            self.second(second, stream)?;
        }
        // What is seen from here on stays with its probe.
        observations.close();
        while let Ok(observation) = observations.try_recv() {
            self.observed(observation, stream)?;
        }
        while let Ok(turn) = turns.try_recv() {
            self.turned(turn, began, &mut course, stream)?;
        }
        let unseen = self.faults.len() - self.at_last_change().count() - course.over;
        if unseen > 0 {
            course.failed.push(format!(
                "the load ended before {unseen} of its faults were recovered from; make it longer"
            ));
        }
        Ok(Loaded {
            began,
            summary,
            repeated: scene.target.repeated(),
            outages: course.outages,
            failed: course.failed,
            late,
        })
    }

    /// The measured part begins.
    fn warm(&self, began: Instant, ended: Ended, stream: &mut Stream) -> anyhow::Result<()> {
        stream.emit(Event::WarmUp {
            key: self.key.clone(),
            detected_s: began.elapsed().as_secs_f64(),
            steady: ended.steady,
            says: ended.says,
        })?;
        stream.phase(self.key, Phase::Load)
    }

    fn turned(&self, turn: Turn, began: Instant, course: &mut Course, stream: &mut Stream) -> anyhow::Result<()> {
        let spec = &self.faults[turn.number - 1];
        match &turn.state {
            FaultState::Inflicted { .. } => course.felt_ms = wall_ms(turn.at),
            FaultState::Healed { crashed_ms } => {
                let outage = Outage::new(&spec.target, course.felt_ms, wall_ms(turn.at), *crashed_ms);
                course.outages.push(outage);
            }
            FaultState::Recovered { .. } => course.over += 1,
            FaultState::Failed { reason } => {
                course.over += 1;
                course.failed.push(spec.failed(reason));
            }
            // None of the load's.
            FaultState::Outlived { .. } => {}
        }
        let since = turn.at.saturating_duration_since(began);
        self.tell(turn.number, since, turn.state, stream)
    }

    /// Another state of the fault with this number, so long after the load began.
    pub(super) fn tell(
        &self,
        number: usize,
        since: Duration,
        state: FaultState,
        stream: &mut Stream,
    ) -> anyhow::Result<()> {
        let spec = &self.faults[number - 1];
        stream.emit(Event::Fault {
            key: self.key.clone(),
            t_s: since.as_secs_f64(),
            number,
            kind: spec.kind.clone(),
            target: spec.target.clone(),
            state,
        })
    }

    fn second(&self, second: Second, stream: &mut Stream) -> anyhow::Result<()> {
        stream.emit(Event::Second {
            key: self.key.clone(),
            second,
        })
    }

    fn observed(&self, observation: Observation, stream: &mut Stream) -> anyhow::Result<()> {
        let key = self.key.clone();
        stream.emit(match observation {
            Observation::Sample { t_s, sample } => Event::Sample { key, t_s, sample },
            Observation::Failed { probe, error } => Event::ProbeFailed { key, probe, error },
        })
    }
}
