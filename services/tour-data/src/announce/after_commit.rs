//! The published way: publish when the transaction is committed, and wait for the broker's confirm.
//!
//! The 201 says that both the tour and its message are safe. When the broker does not confirm in time the answer is
//! 503, the tour stays, and repeating the request with its idempotency key publishes again.
//!
//! Gives up: a tour whose client never repeats the request stays unannounced, and a broker outage is an outage of
//! Create Tour. Not to be used where every committed tour must be announced whatever the client does.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Announce, AnnounceError, message};
use crate::plan::{Cause, Committed, Ctx, Delivery, Loss, Lost, Needs, Promise, Spec};

pub(super) static SPEC: Spec = Spec {
    name: "after-commit",
    summary: "publish after COMMIT and wait for the broker's confirm before the 201",
    baseline: true,
    promise: Some(Promise::Message {
        delivery: Delivery::AtLeastOnce,
        loses: &[Loss {
            text: "the message of a committed tour that was not acknowledged, if its request is not repeated",
            of: Lost::Unacknowledged,
            causes: &[Cause::Replica, Cause::Database, Cause::Broker],
        }],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Announce> {
    Arc::new(AfterCommit)
}

struct AfterCommit;

#[async_trait]
impl Announce for AfterCommit {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, cx: &Ctx, done: &Committed) -> Result<(), AnnounceError> {
        cx.broker
            .publish(message(cx, done))
            .await
            .map_err(|error| AnnounceError(error.to_string()))
    }
}
