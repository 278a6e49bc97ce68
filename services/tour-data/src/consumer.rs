//! The consumer of created tours: drains the queue, so that its depth tells whether the broker keeps up.
//!
//! One consumer is active at a time, however many replicas run (`x-single-active-consumer`). It only counts, so a
//! message that comes twice does no harm; those that the broker says it delivered before are counted apart.

use std::time::Duration;

use chassis::broker::{Broker, Delivery, HandlerError};
use chassis::service::Background;
use serde::Deserialize;
use uuid::Uuid;

use crate::metrics;

/// Enough to keep the consumer busy over a round trip to the broker.
const PREFETCH: u16 = 50;

/// What the consumer needs of the message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TourCreated {
    tour_id: Uuid,
}

/// `delay` is spent on each message before it is acknowledged.
pub(crate) fn consumer(broker: &Broker, queue: &'static str, delay: Duration) -> Background {
    broker.consume(queue, PREFETCH, move |delivery| async move {
        // A timer of no length still costs a turn of the runtime.
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        handle(&delivery)
    })
}

/// A message that is none is given up: it would be none the next time.
fn handle(delivery: &Delivery) -> Result<(), HandlerError> {
    let TourCreated { tour_id } =
        serde_json::from_slice(&delivery.body).map_err(|error| HandlerError::Reject(error.to_string()))?;
    metrics::consumed(delivery.redelivered);
    tracing::debug!(%tour_id, redelivered = delivery.redelivered, "a tour was announced");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(body: &str) -> Delivery {
        Delivery {
            message_id: None,
            routing_key: "tour.created".to_owned(),
            redelivered: false,
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_message_that_is_none_is_given_up_and_not_repeated() {
        assert!(matches!(handle(&delivery("{}")), Err(HandlerError::Reject(_))));
        let good = r#"{"tourId":"0190b6f4-0000-7000-8000-000000000001","tenantKey":"BEHNGT"}"#;
        assert!(handle(&delivery(good)).is_ok());
    }
}
