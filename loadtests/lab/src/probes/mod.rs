//! Probes: what is sampled while a load runs, one file a probe.
//!
//! A probe looks from outside (system views, `/metrics`, `/proc`, the broker) and never at a service's tables. Each has
//! a task and an interval of its own, so that a slow one delays nobody; a failing one is reported and tried again.

mod activity;
mod deadlocks;
mod hold;
mod hot;
pub(crate) mod locks;
mod pool;
pub(crate) mod processes;
mod queue;

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use deploy::Stack;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::events::Sample;
use crate::facts::Facts;

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
}

/// Probes that are running; dropping them stops them.
#[derive(Debug)]
pub(crate) struct Probes {
    tasks: JoinSet<()>,
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
        let mut tasks = JoinSet::new();
        for (interval, probe) in probes {
            tasks.spawn(watch(probe, interval, began, sink.clone()));
        }
        Ok(Self { tasks })
    }

    /// Ends all probes; a sample under way is dropped.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
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

async fn watch(mut probe: Box<dyn Probe>, interval: Duration, began: Instant, sink: UnboundedSender<Observation>) {
    let mut ticks = tokio::time::interval(interval);
    // A late sample must not be followed by a burst that would count one moment twice.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let t_s = began.elapsed().as_secs_f64();
        let observation = match probe.sample().await {
            Ok(sample) => Observation::Sample { t_s, sample },
            Err(error) => Observation::Failed {
                probe: probe.name().to_owned(),
                error: format!("{error:#}"),
            },
        };
        if sink.send(observation).is_err() {
            return;
        }
    }
}
