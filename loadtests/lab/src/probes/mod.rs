//! Probes: what is sampled while a load runs, one file a probe.
//!
//! A probe looks from outside (system views, `/metrics`, `/proc`, the broker) and never at a service's tables. Each has
//! a task and an interval of its own, so that a slow one delays nobody; a failing one is reported and tried again.

mod activity;
mod counter;
mod deadlocks;
mod hold;
mod hot;
pub(crate) mod locks;
mod pool;
pub(crate) mod processes;
mod queue;
mod rollbacks;

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use deploy::Stack;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::events::Sample;
use crate::facts::Facts;

/// A last sample that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the probes look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intervals {
    /// Wait graph; 3 s as published, shorter on request.
    pub(crate) locks: Duration,
    /// Depth of the broker's queues; 2 s as published.
    pub(crate) queue: Duration,
    /// Everything else.
    pub(crate) others: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            locks: Duration::from_secs(3),
            queue: Duration::from_secs(2),
            others: Duration::from_secs(1),
        }
    }
}

/// What a probe has to say.
#[derive(Debug)]
pub(crate) enum Observation {
    Sample {
        /// Seconds since the probes were started.
        t_s: f64,
        sample: Sample,
    },
    Failed {
        probe: String,
        error: String,
    },
}

/// One source of samples.
#[async_trait]
trait Probe: Send {
    fn name(&self) -> &'static str;

    /// Takes one sample. An error is reported and the next tick tries again.
    async fn sample(&mut self) -> anyhow::Result<Sample>;

    /// Whether what it looks at tells of the load only when the load is over, so that a last sample belongs to it too.
    fn is_told_late(&self) -> bool {
        false
    }
}

/// Probes that are running; dropping them stops them.
#[derive(Debug)]
pub(crate) struct Probes {
    tasks: JoinSet<Watch>,
    /// Those that are told late: they end by themselves when `running` is dropped.
    late: JoinSet<Watch>,
    running: watch::Sender<()>,
}

/// Probes that take one more sample.
#[derive(Debug, Default)]
pub(crate) struct Late(JoinSet<Watch>);

/// A probe at work.
struct Watch {
    probe: Box<dyn Probe>,
    /// When all probes were started.
    began: Instant,
    /// What it saw when nobody listened any more.
    unsent: Option<Observation>,
}

impl Probes {
    /// Starts every probe on `stack`, as it is composed now, and sends what they see to `sink`.
    ///
    /// # Errors
    /// PostgreSQL or the broker cannot be reached, or a service does not describe itself.
    pub(crate) async fn start(
        stack: &Stack,
        intervals: &Intervals,
        sink: UnboundedSender<Observation>,
    ) -> anyhow::Result<Self> {
        let facts = Facts::of(stack);
        let mut probes: Vec<(Duration, Box<dyn Probe>)> = Vec::new();
        for database in facts.databases() {
            let pool = connect(&stack.postgres(database)).await?;
            probes.push((intervals.locks, Box::new(locks::Locks::new(pool.clone()))));
            probes.push((intervals.others, Box::new(activity::Activity::new(pool.clone()))));
            let deadlocks = deadlocks::Deadlocks::new(stack, database, pool.clone()).await?;
            probes.push((intervals.others, Box::new(deadlocks)));
            let rollbacks = rollbacks::Rollbacks::new(pool.clone()).await?;
            probes.push((intervals.others, Box::new(rollbacks)));
            probes.push((intervals.others, Box::new(hot::Hot::new(pool).await?)));
        }
        if !facts.queues().is_empty() {
            probes.push((
                intervals.queue,
                Box::new(queue::Queue::connect(&stack.amqp(), facts.queues()).await?),
            ));
        }
        if let Some(meter) = stack.hold_meter() {
            probes.push((intervals.others, Box::new(hold::Hold::new(meter).await?)));
        }
        probes.push((intervals.others, Box::new(pool::Pool::new(stack)?)));
        probes.push((intervals.others, Box::new(processes::Processes::new(stack))));

        let began = Instant::now();
        let mut running = Self {
            tasks: JoinSet::new(),
            late: JoinSet::new(),
            running: watch::Sender::new(()),
        };
        for (interval, probe) in probes {
            let tasks = if probe.is_told_late() {
                &mut running.late
            } else {
                &mut running.tasks
            };
            let watch = Watch {
                probe,
                began,
                unsent: None,
            };
            tasks.spawn(watch.keep(interval, sink.clone(), running.running.subscribe()));
        }
        Ok(running)
    }

    /// Ends all probes; a sample under way is dropped, unless its probe is told late. Those are given back.
    pub(crate) async fn stop(mut self) -> Late {
        self.tasks.shutdown().await;
        Late(self.late)
    }
}

impl Late {
    /// The last samples, to be taken when nothing is under way any more.
    pub(crate) async fn last(mut self) -> Vec<Observation> {
        let mut seen = Vec::new();
        let all = async {
            while let Some(ended) = self.0.join_next().await {
                // One that panicked has said so on stderr, and has nothing more to say.
                let Ok(mut watch) = ended else { continue };
                seen.extend(watch.unsent.take());
                seen.push(watch.look().await);
            }
        };
        if tokio::time::timeout(PATIENCE, all).await.is_err() {
            seen.push(Observation::Failed {
                probe: "last samples".to_owned(),
                error: format!("no answer within {} s", PATIENCE.as_secs()),
            });
        }
        seen
    }
}

/// A small pool of the lab's own for looking at `url`; two connections, so that probes do not wait for each other.
pub(crate) async fn connect(url: &str) -> anyhow::Result<PgPool> {
    let options = url
        .parse::<sqlx::postgres::PgConnectOptions>()
        .context("not a PostgreSQL URL")?;
    PgPoolOptions::new()
        .max_connections(2)
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(options.application_name("rowlock-lab"))
        .await
        .context("the lab cannot reach PostgreSQL")
}

impl Watch {
    /// Looks until nobody holds the other end of `running`, or nobody listens.
    async fn keep(
        mut self,
        interval: Duration,
        sink: UnboundedSender<Observation>,
        mut running: watch::Receiver<()>,
    ) -> Self {
        let mut ticks = tokio::time::interval(interval);
        // A late sample must not be followed by a burst that would count one moment twice.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = running.changed() => return self,
                _ = ticks.tick() => {}
            }
            if let Err(unsent) = sink.send(self.look().await) {
                self.unsent = Some(unsent.0);
                return self;
            }
        }
    }

    async fn look(&mut self) -> Observation {
        let t_s = self.began.elapsed().as_secs_f64();
        match self.probe.sample().await {
            Ok(sample) => Observation::Sample { t_s, sample },
            Err(error) => Observation::Failed {
                probe: self.probe.name().to_owned(),
                error: format!("{error:#}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::DeadlockSample;

    /// Counts its samples.
    struct Counting(u64);

    #[async_trait]
    impl Probe for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        async fn sample(&mut self) -> anyhow::Result<Sample> {
            self.0 += 1;
            Ok(Sample::Deadlocks(DeadlockSample {
                count: self.0,
                logged: Vec::new(),
            }))
        }
    }

    fn count(observation: &Observation) -> u64 {
        match observation {
            Observation::Sample {
                sample: Sample::Deadlocks(sample),
                ..
            } => sample.count,
            other => panic!("not a sample of the probe: {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_probe_that_is_told_late_looks_once_more_after_its_end_and_loses_no_sample() {
        let watch = Watch {
            probe: Box::new(Counting(0)),
            began: Instant::now(),
            unsent: None,
        };
        let (sink, mut observations) = tokio::sync::mpsc::unbounded_channel();
        let mut probes = Probes {
            tasks: JoinSet::new(),
            late: JoinSet::new(),
            running: watch::Sender::new(()),
        };
        let running = probes.running.subscribe();
        probes.late.spawn(watch.keep(Duration::from_millis(1), sink, running));
        let mut seen = vec![observations.recv().await.unwrap()];
        let late = probes.stop().await;
        observations.close();
        while let Ok(observation) = observations.try_recv() {
            seen.push(observation);
        }
        seen.extend(late.last().await);
        let counts: Vec<u64> = seen.iter().map(count).collect();
        assert!(counts.len() > 1, "{counts:?}");
        assert_eq!(counts, (1..=counts.len() as u64).collect::<Vec<_>>());
    }
}
