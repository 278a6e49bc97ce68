//! Do not wait for the row: `SELECT … FOR UPDATE NOWAIT` first, and on "locked" roll back and try again a little later.
//!
//! What is written where waiting inside the database is forbidden. A tour that finds the row locked gives its connection
//! back while it waits, so a pool that is too small starves less.
//!
//! Gives up: order and efficiency. Nobody queues, so a tour may lose any number of times; the row stands free between an
//! attempt and the next one; and after about ten seconds of attempts a tour fails with 503. Not to be used where the row is
//! busy, which is the case that it is meant for.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, published_binds, published_update, step};
use crate::placement::Home;
use crate::plan::{Bind, Config, Ctx, Expect, Kept, Needs, Order, Part, Promise, Shape, Spec, Steps, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "nowait-retry",
    summary: "SELECT … FOR UPDATE NOWAIT before the inserts; a locked row ends the attempt, which is made again later",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[],
    }),
    needs: Needs {
        answers_between_steps: true,
        ..Needs::NONE
    },
};

const SHAPES: [Shape; 2] = [
    Shape {
        summary: "SELECT tenant_config FOR UPDATE NOWAIT",
        sql: "SELECT id FROM tenant_config WHERE id = $1 FOR UPDATE NOWAIT",
        when: When::BeforeInserts,
        expect: Expect::Exactly(1),
        part: Part::Alone,
    },
    published_update(When::BeforeInserts),
];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(NowaitRetry)
}

struct NowaitRetry;

#[async_trait]
impl Touch for NowaitRetry {
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

    /// Each is one round trip and its pause, of 100 ms at most.
    fn retries(&self) -> usize {
        100
    }
}
