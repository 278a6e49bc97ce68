//! Write the message into the tour's transaction, and let a relay publish it from there.
//!
//! Tour and message commit together, so no crash of anything can leave one without the other, and a broker that is away
//! delays messages without failing tours. A task in every replica publishes what has gathered, lane by lane, and takes
//! away what the broker has confirmed. Messages of a tenant go out in the order of its tours, as far as one was sent after
//! the 201 of the other.
//!
//! Gives up: the message with the 201 (it follows milliseconds later, or when the broker is back), a row that is written
//! and deleted for each tour, and a connection of its own for the relay of each replica. One relay publishes one message of a
//! lane at a time: a tenant whose tours come faster than the broker confirms waits for its messages. Not to be used where
//! the broker is as safe as the database and the message must be out with the answer.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::outbox::{INSERT, Relay};
use chassis::service::Background;
use tokio::sync::Notify;

use super::{Announce, AnnounceError, TOUR_CREATED, body};
use crate::plan::{Bind, Committed, Ctx, Delivery, Expect, Needs, Part, Promise, Shape, Spec, Step, Steps, When};
use crate::tour::{NewTour, TenantId};

pub(super) static SPEC: Spec = Spec {
    name: "outbox",
    summary: "written in the tour's transaction, published by a relay: at least once, ordered per tenant",
    baseline: false,
    promise: Some(Promise::Message {
        delivery: Delivery::AtLeastOnce,
        loses: &[],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "INSERT outbox",
    sql: INSERT,
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Anywhere,
}];

pub(super) fn make() -> Arc<dyn Announce> {
    Arc::new(Outbox::default())
}

#[derive(Default)]
struct Outbox {
    wake: Arc<Notify>,
}

#[async_trait]
impl Announce for Outbox {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    fn steps(&self, tenant: TenantId, tour: &NewTour) -> Steps {
        let message = vec![
            Bind::Id(tenant.0),
            Bind::Text(tour.id.to_string()),
            Bind::Text(body(tour)),
        ];
        Steps(vec![Step {
            shape: 0,
            binds: message,
        }])
    }

    async fn settle(&self, _cx: &Ctx, _done: &Committed) -> Result<(), AnnounceError> {
        self.wake.notify_one();
        Ok(())
    }

    fn background(self: Arc<Self>, cx: &Ctx) -> Option<Background> {
        let relay = Relay {
            broker: cx.broker.clone(),
            exchange: cx.exchange,
            routing_key: TOUR_CREATED,
            outboxes: cx.placement.shards().iter().map(|shard| shard.db.clone()).collect(),
            wake: Arc::clone(&self.wake),
        };
        Some(relay.start())
    }
}
