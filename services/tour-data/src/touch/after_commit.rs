//! Write the row in a transaction of its own, after that of the tour and before its 201.
//!
//! The row is locked for one statement and its flush. The statement writes only over something older, by the time of the
//! tour, so that a request that is repeated under its idempotency key can do it again without harm.
//!
//! Gives up: atomicity, and the database's word on which tour was last: the clocks of the replicas decide. A replica that
//! crashes between the two leaves a tour whose touch is missing, until the request is repeated; and each tour pays for a
//! second flush and a second turn at the connection pool. Not to be used where tour and row must never disagree.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Touch, TouchError, write_newest};
use crate::placement::Home;
use crate::plan::{Cause, Committed, Config, Ctx, Kept, Loss, Lost, Needs, Order, Promise, Spec};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "after-commit",
    summary: "a transaction of its own between the tour's COMMIT and its 201",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Exact,
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[Loss {
            text: "the touch of a committed tour that was not acknowledged, if its request is not repeated",
            of: Lost::Unacknowledged,
            causes: &[Cause::Replica, Cause::Database],
        }],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(AfterCommit)
}

struct AfterCommit;

#[async_trait]
impl Touch for AfterCommit {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, cx: &Ctx, _home: &Home, tour: &NewTour, done: &Committed) -> Result<(), TouchError> {
        write_newest(cx, &tour.tenant, done.created_at)
            .await
            .map_err(|error| TouchError(error.to_string()))
    }
}
