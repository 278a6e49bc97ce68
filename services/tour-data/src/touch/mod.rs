//! Axis `touch`: how the tenant row is written and read.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::broker::Queue;
use chassis::service::Background;
use chrono::{DateTime, Utc};

use crate::axis::{Axis, Entry};
use crate::placement::{Home, PlacementError};
use crate::plan::{Bind, Committed, Ctx, Expect, Part, Shape, Spec, Step, Steps, When};
use crate::store::{self, StoreError, TenantConfig};
use crate::tour::{NewTour, Tenant, TenantId};

include!(concat!(env!("OUT_DIR"), "/touch.rs"));

/// A way to write the tenant row.
#[async_trait]
pub trait Touch: Send + Sync {
    /// Name and promise.
    fn spec(&self) -> &'static Spec;

    /// The statements it adds to the transaction; none, unless it says otherwise.
    fn shapes(&self) -> &'static [Shape] {
        &[]
    }

    /// Which of them this tour runs, with which values. Takes no lock; called anew when the transaction is retried.
    async fn decide(&self, _cx: &Ctx, _home: &Home, _tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps::default())
    }

    /// How often a transaction that PostgreSQL rolled back in favour of another one is run again.
    fn retries(&self) -> usize {
        5
    }

    /// Work between COMMIT and the 201. Runs again for a request that is repeated with its idempotency key: with the
    /// time of its first run, so that it cannot undo what others wrote since.
    async fn settle(&self, _cx: &Ctx, _home: &Home, _tour: &NewTour, _done: &Committed) -> Result<(), TouchError> {
        Ok(())
    }

    /// The queues it needs at the broker, given the name of the one that is configured for touches.
    fn queues(&self, _touches: &'static str) -> Vec<Queue> {
        Vec::new()
    }

    /// Work beside the requests. It ends soon after [`Ctx::quiet`] is cancelled.
    fn background(self: Arc<Self>, _cx: &Ctx) -> Option<Background> {
        None
    }

    /// The configuration as readers see it.
    async fn read(&self, _cx: &Ctx, home: &Home) -> Result<TenantConfig, StoreError> {
        store::tenant_config(&home.shard, home.tenant).await
    }
}

/// Why a touch could not do its part.
#[derive(Debug, thiserror::Error)]
#[error("the tenant row could not be touched: {0}")]
pub struct TouchError(pub String);

impl Axis for dyn Touch {
    const NAME: &'static str = "touch";
    type Make = fn() -> Arc<dyn Touch>;

    fn registry() -> &'static [Entry<Self>] {
        REGISTRY
    }
}

/// The published UPDATE, column for column, at the given place. One row is the tenant's.
const fn published_update(when: When) -> Shape {
    Shape {
        summary: "UPDATE tenant_config",
        sql: "UPDATE tenant_config SET modified_at=$1, tenant=$2, tenant_info=$3, tenant_key=$4 WHERE id=$5",
        when,
        expect: Expect::Exactly(1),
        part: Part::Ordered,
    }
}

/// The binds of [`published_update`]: the clock is read as the statement is sent, before it waits for the row.
fn published_binds(tenant: TenantId, tour: &NewTour) -> Vec<Bind> {
    let config = &tour.tenant;
    vec![
        Bind::Now,
        Bind::Text(config.tenant.clone()),
        Bind::OptionalText(config.info.clone()),
        Bind::Text(config.key.as_str().to_owned()),
        Bind::Id(tenant.0),
    ]
}

/// The step that runs one shape.
fn step(shape: usize, binds: Vec<Bind>) -> Step {
    Step { shape, binds }
}

/// The binds of a statement that writes what changed: `$1` the clock, `$2` and `$3` the values, `$4` the row.
fn changed_binds(tenant: TenantId, tour: &NewTour) -> Vec<Bind> {
    vec![
        Bind::Now,
        Bind::Text(tour.tenant.tenant.clone()),
        Bind::OptionalText(tour.tenant.info.clone()),
        Bind::Id(tenant.0),
    ]
}

/// The binds of a statement whose newest writer wins: as [`changed_binds`], with the time of the tour as `$1`. It is the
/// same however often the transaction is retried.
fn newest_binds(tenant: TenantId, tour: &NewTour) -> Vec<Bind> {
    let mut binds = changed_binds(tenant, tour);
    binds[0] = Bind::Time(tour.created_at);
    binds
}

/// Writes the row in a transaction of its own, wherever the tenant lives by now, unless it holds something newer.
async fn write_newest(cx: &Ctx, config: &Tenant, at: DateTime<Utc>) -> Result<(), PlacementError> {
    let home = cx.placement.home(&config.key).await?;
    match store::write_newest(&home.shard, home.tenant, config, at).await {
        Err(StoreError::NotFound) => {}
        written => return Ok(written?),
    }
    cx.placement.moved(&config.key).await;
    let home = cx.placement.home(&config.key).await?;
    Ok(store::write_newest(&home.shard, home.tenant, config, at).await?)
}
