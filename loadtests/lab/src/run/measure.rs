//! One measurement: one arm in one round.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::{LinkName, Stack, Topology};
use load::{Closed, HttpTarget, Second, Summary};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::audit::{Auditor, Expected};
use crate::events::{Event, Phase, RunKey};
use crate::experiment::{ArmLoad, Experiment};
use crate::probes::{Intervals, Observation, Probes};
use crate::run::stream::Stream;
use crate::run::target::{self, CLIENT};
use crate::run::{drain, preflight};

/// What a measurement needs to know beside the stack it is made on.
pub(super) struct Bench<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) key: &'a RunKey,
    pub(super) arm_load: ArmLoad,
    pub(super) intervals: &'a Intervals,
    /// Result folder.
    pub(super) folder: &'a Path,
    /// Tells this measurement's files in the folder from the others'.
    pub(super) label: String,
}

impl Bench<'_> {
    /// Brings the stack to `topology` (a fresh stack may be there already), loads it, and audits what the load left
    /// behind.
    ///
    /// # Errors
    /// The arm could not be measured; a violated invariant is a result and no error.
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
        preflight::check(stack).await.context("preflight")?;
        self.round_trip(stack, stream).await?;
        stream.emit(Event::Preset {
            key: self.key.clone(),
            not_in_force: stack.postgres_not_in_force().await?,
        })?;

        let auditor = Auditor::begin(stack, CLIENT, self.folder, &self.label).await?;
        let tours = target::create_tour(stack, self.experiment, self.arm_load.token, Some(auditor.ledger()))?;
        let summary = self.load(stack, tours, stream).await?;
        let unanswered = if summary.failures.is_empty() && summary.abandoned == 0 {
            Duration::ZERO
        } else {
            target::TIMEOUT
        };
        stream.emit(Event::Load {
            key: self.key.clone(),
            load: Box::new(summary),
        })?;

        stream.phase(self.key, Phase::Drain)?;
        drain::wait(stack).await?;
        stream.phase(self.key, Phase::Audit)?;
        let expected = Expected {
            rows_per_tour: Some(self.experiment.rows_per_tour),
            unanswered,
        };
        let audit = auditor
            .finish(stack, &expected)
            .await
            .context("the audit could not be made")?;
        stream.emit(Event::Audit {
            key: self.key.clone(),
            audit,
        })?;

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

    async fn round_trip(&self, stack: &Stack, stream: &mut Stream) -> anyhow::Result<()> {
        let asked = stack.topology().rtt.get(&LinkName::Db).copied().unwrap_or_default();
        let measured = stack.measured_rtt(LinkName::Db).await?;
        stream.emit(Event::RoundTrip {
            key: self.key.clone(),
            asked_ms: asked.as_secs_f64() * 1000.0,
            measured_ms: measured.as_secs_f64() * 1000.0,
        })
    }

    /// The load with the probes beside it; what both say goes into the stream as it comes.
    async fn load(&self, stack: &Stack, target: HttpTarget, stream: &mut Stream) -> anyhow::Result<Summary> {
        let Experiment { warm_up, duration, .. } = *self.experiment;
        let ArmLoad { users, think, .. } = self.arm_load;
        let shape = Closed {
            users,
            warm_up,
            duration,
            think,
            max_iterations: None,
        };
        let (second, mut seconds) = mpsc::unbounded_channel();
        let (sink, mut observations) = mpsc::unbounded_channel();

        let mut probes = Some(
            Probes::start(stack, self.intervals, sink)
                .await
                .context("the probes did not start")?,
        );
        let began = Instant::now();
        let mut warming = !warm_up.is_zero();
        stream.phase(self.key, if warming { Phase::WarmUp } else { Phase::Load })?;
        let load = load::run(Arc::new(target), &shape, |each| {
            // The receiver lives as long as this function.
            let _ = second.send(each.clone());
        });
        tokio::pin!(load);
        let summary = loop {
            tokio::select! {
                ended = &mut load => break ended?,
                Some(second) = seconds.recv() => self.second(second, stream)?,
                Some(observation) = observations.recv() => self.observed(observation, stream)?,
                () = sleep_until(began + warm_up), if warming => {
                    warming = false;
                    stream.phase(self.key, Phase::Load)?;
                }
                // Requests that outlast the window are waited for, but what the probes would see then is another load.
                () = sleep_until(began + warm_up + duration), if probes.is_some() => {
                    if let Some(probes) = probes.take() {
                        probes.stop().await;
                    }
                }
            }
        };
        while let Ok(second) = seconds.try_recv() {
            self.second(second, stream)?;
        }
        while let Ok(observation) = observations.try_recv() {
            self.observed(observation, stream)?;
        }
        Ok(summary)
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
