//! Leave the UPDATE to a constraint trigger that runs inside COMMIT.
//!
//! Behind the inserts the tour puts a marker into `tenant_config_touch`. The marker's trigger is DEFERRABLE INITIALLY
//! DEFERRED: PostgreSQL runs it when it commits, and it updates the row and takes the marker away. The row is locked for the
//! trigger and the flush of COMMIT, and for no round trip at all, so it holds up where `update-last` does not: behind
//! batched inserts.
//!
//! Gives up: simplicity. The UPDATE stands in a migration and not in the service, an error of it comes as an error of COMMIT,
//! and each tour leaves a dead marker for vacuum. Not to be used where a tool between service and database takes a failed
//! COMMIT for a lost connection.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "deferred-trigger",
    summary: "a marker row, whose deferred constraint trigger updates the tenant row inside COMMIT",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "INSERT tenant_config_touch",
    sql: "INSERT INTO tenant_config_touch (modified_at, tenant, tenant_info, tenant_config_id) VALUES ($1, $2, $3, $4)",
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Anywhere,
}];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(DeferredTrigger)
}

struct DeferredTrigger;

#[async_trait]
impl Touch for DeferredTrigger {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![step(0, changed_binds(home.tenant, tour))]))
    }
}
