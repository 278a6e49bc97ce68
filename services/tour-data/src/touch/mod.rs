//! Axis `touch`: how the tenant row is written and read.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it.

use std::sync::Arc;

use async_trait::async_trait;

use crate::axis::{Axis, Entry};
use crate::placement::Home;
use crate::plan::{Bind, Committed, Ctx, Expect, Shape, Spec, Steps, When};
use crate::store::{self, StoreError, TenantConfig};
use crate::tour::{NewTour, TenantId};

include!(concat!(env!("OUT_DIR"), "/touch.rs"));

/// A way to write the tenant row.
#[async_trait]
pub trait Touch: Send + Sync {
    /// Name and promise.
    fn spec(&self) -> &'static Spec;

    /// The statements it adds to the transaction.
    fn shapes(&self) -> &'static [Shape];

    /// Which of them this tour runs, with which values. Takes no lock; called anew when the transaction is retried.
    async fn decide(&self, cx: &Ctx, tenant: TenantId, tour: &NewTour) -> Result<Steps, TouchError>;

    /// Work between COMMIT and the 201. Runs again for a request that is repeated with its idempotency key.
    async fn settle(&self, _cx: &Ctx, _done: &Committed) -> Result<(), TouchError> {
        Ok(())
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
