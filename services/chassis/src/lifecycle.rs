//! A running service and its two-stage shutdown.
//!
//! First stage: `/readyz` turns 503 and answers carry `Connection: close`; after `drain_delay` the listener closes and
//! the requests in flight finish. Second stage: with no request left that could need them, background tasks are told
//! to drain. `drain_timeout` bounds both, counted from the moment the listener closes.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::admin;
use crate::config::{self, Common};
use crate::http;
use crate::readiness::Readiness;
use crate::serve::{Bound, Server};
use crate::service::{App, Chassis, Service, StartError};
use crate::telemetry;

/// Tells background tasks that the last request is done and that they should finish.
#[derive(Clone, Debug, Default)]
pub struct Drain(CancellationToken);

impl Drain {
    /// Resolves when it is time to finish.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.0.cancelled()
    }

    pub(crate) fn cancel(&self) {
        self.0.cancel();
    }
}

/// A task that runs beside the router and ends once [`Drain`] is cancelled. One that ends sooner, fails or panics ends
/// the service with exit status 1: a service that is half alive is worse than one that is restarted.
pub struct Background {
    name: &'static str,
    task: BoxFuture<'static, anyhow::Result<()>>,
}

impl Background {
    /// `name` appears in logs and errors.
    pub fn new(name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) -> Self {
        Self {
            name,
            task: task.boxed(),
        }
    }

    /// The task itself, for whoever runs it without a service around it. A panic is an error.
    pub async fn run(self) -> anyhow::Result<()> {
        match AssertUnwindSafe(self.task).catch_unwind().await {
            Ok(outcome) => outcome.with_context(|| format!("background task {} failed", self.name)),
            Err(_) => Err(anyhow!("background task {} panicked", self.name)),
        }
    }
}

struct Ended {
    name: &'static str,
    outcome: anyhow::Result<()>,
}

/// A service that is being served in this process. Dropping it aborts it.
pub struct Running {
    /// Where the service listens.
    pub http_addr: SocketAddr,
    /// Where its admin port listens.
    pub admin_addr: SocketAddr,
    common: Common,
    readiness: Arc<Readiness>,
    http: Server,
    admin: Server,
    drain: Drain,
    background: JoinSet<Ended>,
    /// Names of the background tasks that have not ended.
    alive: BTreeSet<&'static str>,
}

pub(crate) async fn start<S: Service>(common: Common, config: S::Config) -> Result<Running, StartError> {
    let instance_id = common.instance_id(S::NAME);
    telemetry::ensure_meter(S::NAME, &instance_id);
    let view = config::view(S::NAME, &instance_id, &common, &config)?;
    let drain = Drain::default();
    let chassis = Chassis {
        instance_id,
        service: S::NAME,
        drain: drain.clone(),
    };
    let App {
        router,
        dependencies,
        background,
    } = S::build(config, chassis).await?;

    let http = Bound::new(common.http_addr).await.map_err(StartError::Unavailable)?;
    let admin = Bound::new(common.admin_addr).await.map_err(StartError::Unavailable)?;
    let (http_addr, admin_addr) = (http.addr, admin.addr);
    tracing::info!(
        http_addr = %http_addr,
        admin_addr = %admin_addr,
        digest = view.digest,
        "listening"
    );
    let readiness = Arc::new(Readiness::new(dependencies));
    let mut running = Running {
        http_addr,
        admin_addr,
        http: http.serve(http::layer(router, Arc::clone(&readiness), &common, S::waited_for)),
        common,
        admin: admin.serve(admin::router(Arc::clone(&readiness), view)),
        readiness,
        drain,
        background: JoinSet::new(),
        alive: BTreeSet::new(),
    };
    for task in background {
        let name = task.name;
        running.alive.insert(name);
        running.background.spawn(async move {
            Ended {
                name,
                outcome: task.run().await,
            }
        });
    }
    Ok(running)
}

impl Running {
    /// Resolves when a background task has ended that should still be running.
    pub(crate) async fn crashed(&mut self) -> anyhow::Error {
        match self.next_ended().await {
            Some((_, Err(error))) => error,
            Some((name, Ok(()))) => anyhow!("background task {name} ended while the service was running"),
            None => std::future::pending().await,
        }
    }

    /// Drains in two stages. An error says what was cut off by `drain_timeout`, or which background task failed.
    pub async fn shutdown(mut self) -> anyhow::Result<()> {
        self.readiness.drain();
        tracing::info!(drain_delay = %self.common.drain_delay, "draining");
        tokio::time::sleep(*self.common.drain_delay).await;
        let limit = self.common.drain_timeout;
        if let Ok(finished) = tokio::time::timeout(*limit, self.finish()).await {
            return finished;
        }
        bail!(
            "not drained within {limit}: {} connections open, background tasks still running: {:?}",
            self.http.open(),
            self.alive
        )
    }

    async fn finish(&mut self) -> anyhow::Result<()> {
        self.http.finish().await?;
        self.drain.cancel();
        let mut outcome = Ok(());
        while let Some((_, ended)) = self.next_ended().await {
            // The first failure is the one to report; those that follow are usually its echo.
            outcome = outcome.and(ended);
        }
        // Last, so that `/readyz` says "draining" and `/metrics` answers as long as anything happens.
        self.admin.finish().await?;
        outcome
    }

    async fn next_ended(&mut self) -> Option<(&'static str, anyhow::Result<()>)> {
        let ended = self
            .background
            .join_next()
            .await?
            .expect("a background task is not cancelled and its panic is caught");
        self.alive.remove(ended.name);
        Some((ended.name, ended.outcome))
    }
}
