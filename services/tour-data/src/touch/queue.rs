//! A single writer behind RabbitMQ: a tour publishes its touch, and one consumer of all replicas writes the rows.
//!
//! The tour's transaction does not see the row, and nobody waits for its lock, since only one writes. The 201 waits for the
//! broker's confirm, so that the touch survives a crash of the replica. The queue gives every message at least once and in
//! about the order in which they came; the newest stays, so neither does harm.
//!
//! Gives up: the moment, and the database's word on which tour was last: the clocks of the replicas decide. A reader sees a change when the writer has come to it, and a writer that is slower than the tours
//! falls behind without a bound. A replica that crashes between COMMIT and publish loses the touch of a tour that was not
//! acknowledged, and without the broker no tour is. Not to be used where the row is read back at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chassis::broker::{Delivery, HandlerError, Message, Queue as Declared};
use chassis::service::Background;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Touch, TouchError, write_newest};
use crate::placement::{Home, PlacementError};
use crate::plan::{Cause, Committed, Config, Ctx, Kept, Loss, Lost, Needs, Order, Promise, Spec};
use crate::tour::{NewTour, Tenant, TenantKey};

/// Enough to keep the writer busy over a round trip to the broker.
const PREFETCH: u16 = 50;

pub(super) static SPEC: Spec = Spec {
    name: "queue",
    summary: "published before the 201 and written by one consumer of all replicas",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::Eventual(Duration::from_secs(5)),
        modified_at: Order::Monotone,
        kept: Kept::Row,
        loses: &[Loss {
            text: "the touch of a committed tour that was not acknowledged, if its request is not repeated",
            of: Lost::Unacknowledged,
            causes: &[Cause::Replica, Cause::Database, Cause::Broker],
        }],
    }),
    needs: Needs::NONE,
};

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(Queue)
}

struct Queue;

/// Body of a message: what the row has to become, unless it is newer.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Touched {
    tenant: String,
    tenant_key: String,
    tenant_info: Option<String>,
    modified_at: DateTime<Utc>,
}

#[async_trait]
impl Touch for Queue {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn settle(&self, cx: &Ctx, _home: &Home, tour: &NewTour, done: &Committed) -> Result<(), TouchError> {
        let body = Touched {
            tenant: tour.tenant.tenant.clone(),
            tenant_key: tour.tenant.key.as_str().to_owned(),
            tenant_info: tour.tenant.info.clone(),
            modified_at: done.created_at,
        };
        let message = Message {
            // The exchange without a name leads to every queue by its own.
            exchange: "",
            routing_key: cx.touches,
            message_id: done.tour_id.to_string(),
            body: serde_json::to_vec(&body).expect("texts and a time are JSON"),
        };
        let published = cx.broker.publish(message).await;
        published.map_err(|error| TouchError(error.to_string()))
    }

    fn queues(&self, touches: &'static str) -> Vec<Declared> {
        vec![Declared {
            name: touches,
            single_active_consumer: true,
            bindings: Vec::new(),
        }]
    }

    fn background(self: Arc<Self>, cx: &Ctx) -> Option<Background> {
        let writer = cx.clone();
        let consume = cx.broker.consume(cx.touches, PREFETCH, move |delivery| {
            let cx = writer.clone();
            async move { write(&cx, &delivery).await }
        });
        Some(consume)
    }
}

async fn write(cx: &Ctx, delivery: &Delivery) -> Result<(), HandlerError> {
    let touched: Touched =
        serde_json::from_slice(&delivery.body).map_err(|error| HandlerError::Reject(error.to_string()))?;
    let key = TenantKey::parse(&touched.tenant_key)
        .ok_or_else(|| HandlerError::Reject(format!("{:?} is no tenant key", touched.tenant_key)))?;
    let config = Tenant {
        tenant: touched.tenant,
        key,
        info: touched.tenant_info,
    };
    match write_newest(cx, &config, touched.modified_at).await {
        Ok(()) => Ok(()),
        Err(unknown @ PlacementError::Unknown(_)) => Err(HandlerError::Reject(unknown.to_string())),
        Err(error) => Err(HandlerError::Retry(error.to_string())),
    }
}
