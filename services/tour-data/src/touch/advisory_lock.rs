//! Queue up at an advisory lock, then do what the baseline does.
//!
//! Waits for a row are not first come, first served: PostgreSQL wakes all waiters of a transaction that ends, and whoever is
//! fastest wins. Waits for an advisory lock are. So this changes who waits how long, and hardly how long all wait together:
//! the tail shrinks by half or more. The clock is read when the lock is there, so `modified_at` never goes backwards.
//!
//! Above READ COMMITTED it is refused: the snapshot is taken before the wait, so that who has waited is rolled back and queues
//! up again at the end.
//!
//! Gives up: concurrency within a tenant, as the baseline does, and a round trip more under the lock. Not to be used for
//! throughput. Behind a pooler in transaction mode it works, since the lock ends with the transaction.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, published_binds, published_update, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "advisory-lock",
    summary: "pg_advisory_xact_lock and then the UPDATE before the inserts: waiters are served in the order they came",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs {
        answers_between_steps: true,
        read_committed: true,
        ..Needs::NONE
    },
};

/// A key of 64 bits: the upper half is this service's, the lower half the tenant's id.
const SHAPES: [Shape; 2] = [
    Shape {
        summary: "SELECT pg_advisory_xact_lock",
        sql: "SELECT pg_advisory_xact_lock((1414482516::bigint << 32) + $1)",
        when: When::BeforeInserts,
        expect: Expect::Exactly(1),
        part: Part::Alone,
    },
    published_update(When::BeforeInserts),
];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(AdvisoryLock)
}

struct AdvisoryLock;

#[async_trait]
impl Touch for AdvisoryLock {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, _cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        Ok(Steps(vec![
            step(0, vec![Bind::Id(home.tenant.0)]),
            step(1, published_binds(home.tenant, tour)),
        ]))
    }
}
