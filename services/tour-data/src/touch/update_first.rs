//! The published way: UPDATE the tenant row, then insert the tour.
//!
//! The row stays locked for the rest of the transaction, 87 round trips and the flush of COMMIT, so tours of one
//! tenant run one after the other however many replicas there are: throughput is 1 / (time the lock is held).
//!
//! Gives up: concurrency within a tenant, and the order of `modified_at` (the clock is read before the wait, and
//! waiters are not served in the order they came). Not to be used where one tenant sends more than a few tours at
//! once; it is here to be measured against.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, published_binds, published_update, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Kept, Needs, Order, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "update-first",
    summary: "UPDATE before the inserts: the row is locked for the whole transaction",
    baseline: true,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [published_update(When::BeforeInserts)];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(UpdateFirst)
}

struct UpdateFirst;

#[async_trait]
impl Touch for UpdateFirst {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![step(0, published_binds(home.tenant, tour))]))
    }
}
