//! Axis `announce`: how the message that a tour was created gets out.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::broker::Message;
use chassis::service::Background;
use serde::Serialize;

use crate::axis::{Axis, Entry};
use crate::plan::{Committed, Ctx, Shape, Spec, Steps};
use crate::tour::{NewTour, TenantId};

include!(concat!(env!("OUT_DIR"), "/announce.rs"));

/// Routing key of the message, and default name of its queue.
pub const TOUR_CREATED: &str = "tour.created";

/// A way to tell others.
#[async_trait]
pub trait Announce: Send + Sync {
    /// Name and promise.
    fn spec(&self) -> &'static Spec;

    /// The statements it adds to the transaction.
    fn shapes(&self) -> &'static [Shape] {
        &[]
    }

    /// Which of them this tour runs, with which values.
    fn steps(&self, _tenant: TenantId, _tour: &NewTour) -> Steps {
        Steps::default()
    }

    /// Work between COMMIT and the 201. Runs again for a request that is repeated with its idempotency key.
    async fn settle(&self, cx: &Ctx, done: &Committed) -> Result<(), AnnounceError>;

    /// Work beside the requests. It ends soon after [`Ctx::quiet`] is cancelled.
    fn background(self: Arc<Self>, _cx: &Ctx) -> Option<Background> {
        None
    }
}

/// The tour is committed and its message is not known to be out.
#[derive(Debug, thiserror::Error)]
#[error("the tour was not announced: {0}")]
pub struct AnnounceError(pub String);

impl Axis for dyn Announce {
    const NAME: &'static str = "announce";
    type Make = fn() -> Arc<dyn Announce>;

    fn registry() -> &'static [Entry<Self>] {
        REGISTRY
    }
}

/// Body of the message, `application/json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TourCreated<'a> {
    tour_id: uuid::Uuid,
    tenant_key: &'a str,
    tour_number: &'a str,
    created_at: chrono::DateTime<chrono::Utc>,
}

impl TourCreated<'_> {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("ids, texts and a time are JSON")
    }
}

/// The body of a tour's message before it is committed.
fn body(tour: &NewTour) -> String {
    let body = TourCreated {
        tour_id: tour.id,
        tenant_key: tour.tenant.key.as_str(),
        tour_number: &tour.tour_number,
        created_at: tour.created_at,
    };
    body.text()
}

/// The message of a tour. Its id is the tour's, so a subscriber can tell a repetition.
fn message(cx: &Ctx, done: &Committed) -> Message {
    let body = TourCreated {
        tour_id: done.tour_id,
        tenant_key: &done.tenant_key,
        tour_number: &done.tour_number,
        created_at: done.created_at,
    };
    Message {
        exchange: cx.exchange,
        routing_key: TOUR_CREATED,
        message_id: done.tour_id.to_string(),
        body: body.text().into_bytes(),
    }
}
