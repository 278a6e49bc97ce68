//! Control: publish after COMMIT and do not wait for the confirm.
//!
//! Shows what waiting for the broker costs. The 201 does not depend on the broker, and says nothing about the message.
//!
//! Gives up: the message, whenever the broker is away or does not confirm, the replica ends, the answer to COMMIT is lost, or
//! more messages are under way than it holds. Nobody is told but the log. Not to be used for anything that somebody waits for.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tracing::{Instrument as _, Span};

use super::{Announce, AnnounceError, message};
use crate::plan::{Cause, Committed, Ctx, Delivery, Loss, Lost, Needs, Promise, Spec};

/// Messages under way at once; what comes on top of them is dropped, so that an outage of the broker is none of memory.
const UNDER_WAY: usize = 1_024;

pub(super) static SPEC: Spec = Spec {
    name: "fire-and-forget",
    summary: "control: publish after COMMIT without waiting for the confirm",
    baseline: false,
    promise: Some(Promise::Message {
        delivery: Delivery::AtMostOnce,
        loses: &[
            Loss {
                text: "any message, whenever the broker is away or a replica ends",
                of: Lost::Acknowledged,
                causes: &[Cause::Broker, Cause::Replica],
            },
            Loss {
                text: "the message of a tour whose COMMIT PostgreSQL did not answer: the repeated request finds it made and \
                       sends nothing",
                of: Lost::Acknowledged,
                causes: &[Cause::Database],
            },
        ],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Announce> {
    Arc::new(FireAndForget {
        free: Arc::new(Semaphore::new(UNDER_WAY)),
    })
}

struct FireAndForget {
    free: Arc<Semaphore>,
}

#[async_trait]
impl Announce for FireAndForget {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, cx: &Ctx, done: &Committed) -> Result<(), AnnounceError> {
        // The first request of this tour has sent it.
        if done.replayed {
            return Ok(());
        }
        let Ok(place) = Arc::clone(&self.free).try_acquire_owned() else {
            tracing::warn!(tour_id = %done.tour_id, "a message is dropped: {UNDER_WAY} are under way");
            return Ok(());
        };
        let (broker, message) = (cx.broker.clone(), message(cx, done));
        let publish = async move {
            // Sent again after a connection broke, it could arrive twice.
            if let Err(error) = broker.publish_once(message).await {
                tracing::warn!(%error, "a message is lost");
            }
            drop(place);
        };
        // What was begun when the service stops in good order is finished.
        let publish = cx.broker.while_draining(publish);
        tokio::spawn(publish.instrument(Span::current()));
        Ok(())
    }
}
