//! The same UPDATE, moved behind the inserts.
//!
//! The row is locked from the UPDATE to COMMIT: one round trip and a flush instead of ninety round trips. Everything that a
//! reader sees is the same, so this is the fix to measure the others against.
//!
//! Gives up: the order of `modified_at`, as the baseline does. Not to be used above READ COMMITTED: the snapshot is
//! then as old as the first INSERT, the UPDATE fails whenever another tour committed since, and the retries cost
//! more than the wait did.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, published_binds, published_update, step};
use crate::placement::Home;
use crate::plan::{Config, Ctx, Kept, Needs, Order, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "update-last",
    summary: "UPDATE after the inserts: the row is locked for one round trip and the flush",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [published_update(When::AfterInserts)];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(UpdateLast)
}

struct UpdateLast;

#[async_trait]
impl Touch for UpdateLast {
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
