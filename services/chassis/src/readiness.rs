//! Whether a service can do its work: the state behind `/readyz`.
//!
//! A missing *required* dependency makes the service unready; a missing *degradable* one is named and changes nothing,
//! since the service still answers without it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join_all};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Gauge;
use serde::Serialize;
use tokio::sync::Mutex;

use crate::telemetry;

/// A check that hangs is a dependency that is away.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// Several balancers ask at once; the dependencies need not notice.
const CACHE: Duration = Duration::from_millis(250);

/// What a missing dependency means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing works without it: `/readyz` answers 503.
    Required,
    /// The service still answers, with less: `/readyz` answers 200 and names it.
    Degradable,
}

type Check = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Something outside of the process that the service needs.
#[derive(Clone)]
pub struct Dependency {
    /// Name in `/readyz`, such as `postgres`.
    pub name: &'static str,
    /// What its absence means.
    pub kind: Kind,
    check: Arc<Check>,
}

impl Dependency {
    /// `check` says why the dependency is away; it is given 2 s and may be dropped before it ends.
    pub fn new(
        name: &'static str,
        kind: Kind,
        check: impl Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            kind,
            check: Arc::new(check),
        }
    }

    async fn status(&self) -> Status {
        let error = match tokio::time::timeout(CHECK_TIMEOUT, (self.check)()).await {
            Ok(answer) => answer.err(),
            Err(_) => Some(format!("no answer within {} s", CHECK_TIMEOUT.as_secs())),
        };
        Status {
            name: self.name,
            kind: self.kind,
            ok: error.is_none(),
            error,
        }
    }
}

/// The body of `/readyz`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) ready: bool,
    draining: bool,
    dependencies: Vec<Status>,
}

#[derive(Clone, Debug, Serialize)]
struct Status {
    name: &'static str,
    kind: Kind,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The readiness of one running service.
pub(crate) struct Readiness {
    draining: AtomicBool,
    dependencies: Vec<Dependency>,
    /// Held while checking, so that simultaneous questions share one round of checks.
    checked: Mutex<Option<(Instant, Vec<Status>)>>,
}

impl Readiness {
    pub(crate) fn new(dependencies: Vec<Dependency>) -> Self {
        Self {
            draining: AtomicBool::new(false),
            dependencies,
            checked: Mutex::new(None),
        }
    }

    /// From now on the service is unready, and every answer tells its client to close the connection.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) async fn report(&self) -> Report {
        let dependencies = self.statuses().await;
        // Read after the checks: a drain that began meanwhile must not be answered with 200.
        let draining = self.draining();
        let broken = dependencies
            .iter()
            .any(|status| !status.ok && status.kind == Kind::Required);
        Report {
            ready: !draining && !broken,
            draining,
            dependencies,
        }
    }

    async fn statuses(&self) -> Vec<Status> {
        let mut checked = self.checked.lock().await;
        if let Some((at, statuses)) = &*checked
            && at.elapsed() < CACHE
        {
            return statuses.clone();
        }
        let statuses = join_all(self.dependencies.iter().map(Dependency::status)).await;
        statuses.iter().for_each(record);
        *checked = Some((Instant::now(), statuses.clone()));
        statuses
    }
}

/// The same for whoever reads metrics: 1 while a dependency is there, 0 while it is not.
fn record(status: &Status) {
    static UP: LazyLock<Gauge<u64>> = LazyLock::new(|| {
        telemetry::meter()
            .u64_gauge("service.dependency.up")
            .with_description("Whether something outside of the process that the service needs is there")
            .build()
    });
    let kind = match status.kind {
        Kind::Required => "required",
        Kind::Degradable => "degradable",
    };
    let attributes = [KeyValue::new("dependency", status.name), KeyValue::new("kind", kind)];
    UP.record(u64::from(status.ok), &attributes);
}
