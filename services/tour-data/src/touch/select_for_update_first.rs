//! Lock the row with SELECT … FOR UPDATE, then read the clock, then UPDATE.
//!
//! What an ORM's pessimistic lock does. The clock is read under the lock, so `modified_at` never goes backwards,
//! which neither of the plain UPDATEs can say.
//!
//! Gives up: concurrency within a tenant, as the baseline does, and one more round trip under the lock. Not to be
//! used for throughput; it shows what the order of `modified_at` costs.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, published_binds, published_update, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "select-for-update-first",
    summary: "SELECT … FOR UPDATE and UPDATE before the inserts; the clock is read under the lock",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[],
    }),
    // Sent together with the lock, the UPDATE would carry a clock from before the wait.
    needs: Needs {
        answers_between_steps: true,
        ..Needs::NONE
    },
};

const SHAPES: [Shape; 2] = [
    Shape {
        summary: "SELECT tenant_config FOR UPDATE",
        sql: "SELECT id FROM tenant_config WHERE id=$1 FOR UPDATE",
        when: When::BeforeInserts,
        expect: Expect::Exactly(1),
        part: Part::Alone,
    },
    published_update(When::BeforeInserts),
];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(SelectForUpdateFirst)
}

struct SelectForUpdateFirst;

#[async_trait]
impl Touch for SelectForUpdateFirst {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        let lock = step(0, vec![Bind::Id(home.tenant.0)]);
        Ok(Steps(vec![lock, step(1, published_binds(home.tenant, tour))]))
    }
}
