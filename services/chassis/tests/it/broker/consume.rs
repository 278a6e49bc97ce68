//! Consuming: through outages, one at a time, to the end of the delivery at hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::{
    broker::{Broker, Delivery, HandlerError},
    service::Drain,
};
use tokio::sync::mpsc;

use super::{Live, Names, Outside};
use crate::servers::{Forwarder, redirect, url};

#[tokio::test]
async fn a_consumer_resumes_after_a_cut_and_a_message_that_failed_comes_again() {
    let server = url("ROWLOCK_TEST_AMQP");
    let hop = Forwarder::to(&server).await;
    let names = Names::new();
    let (seen, mut deliveries) = mpsc::unbounded_channel::<Delivery>();
    let attempts = Arc::new(AtomicUsize::new(0));
    let live = Live::start(&redirect(&server, hop.port), names, move |broker, _| {
        vec![broker.consume(names.queue, 10, move |delivery| {
            let seen = seen.clone();
            let fails_once =
                delivery.message_id.as_deref() == Some("difficult") && attempts.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if fails_once {
                    return Err(HandlerError::Retry("the first attempt fails".to_owned()));
                }
                seen.send(delivery)
                    .map_err(|error| HandlerError::Reject(error.to_string()))
            }
        })]
    })
    .await;
    let mut next = async || {
        let next = tokio::time::timeout(Duration::from_secs(60), deliveries.recv());
        next.await.expect("a delivery in time").expect("a consumer")
    };

    live.broker.publish(names.message("first")).await.expect("confirmed");
    let delivery = next().await;
    assert_eq!(
        (delivery.message_id.as_deref(), delivery.routing_key.as_str()),
        (Some("first"), "created")
    );
    assert_eq!(delivery.body, br#"{"id":"first"}"#);

    live.broker
        .publish(names.message("difficult"))
        .await
        .expect("confirmed");
    let delivery = next().await;
    assert_eq!(
        (delivery.message_id.as_deref(), delivery.redelivered),
        (Some("difficult"), true)
    );

    hop.cut();
    live.until_ready(false).await;
    hop.open();
    live.until_ready(true).await;
    live.broker
        .publish(names.message("after the cut"))
        .await
        .expect("confirmed");
    loop {
        // An acknowledgement may have been lost with the connection, so the earlier message may come again.
        if next().await.message_id.as_deref() == Some("after the cut") {
            break;
        }
    }
    live.stop().await;
    let outside = Outside::connect().await;
    assert!(
        outside.take(names.queue).await.is_none(),
        "what was handled is acknowledged"
    );
    outside.clean_up(names).await;
}

#[tokio::test]
async fn of_two_consumers_one_is_served_and_the_other_takes_over() {
    let server = url("ROWLOCK_TEST_AMQP");
    let names = Names::new();
    let (seen, mut deliveries) = mpsc::unbounded_channel::<(&'static str, Option<String>)>();
    let consume_as = |who: &'static str| {
        let seen = seen.clone();
        move |broker: &Broker, _: Drain| {
            vec![broker.consume(names.queue, 1, move |delivery| {
                let seen = seen.clone();
                async move {
                    seen.send((who, delivery.message_id))
                        .map_err(|error| HandlerError::Reject(error.to_string()))
                }
            })]
        }
    };
    let one = Live::start(&server, names, consume_as("one")).await;
    one.broker.publish(names.message("0")).await.expect("confirmed");
    assert_eq!(deliveries.recv().await, Some(("one", Some("0".to_owned()))));

    let two = Live::start(&server, names, consume_as("two")).await;
    two.until_ready(true).await;
    for n in 1..=20 {
        two.broker
            .publish(names.message(&n.to_string()))
            .await
            .expect("confirmed");
        assert_eq!(
            deliveries.recv().await,
            Some(("one", Some(n.to_string()))),
            "only the first consumer is active"
        );
    }
    one.stop().await;
    two.broker.publish(names.message("21")).await.expect("confirmed");
    assert_eq!(
        deliveries.recv().await,
        Some(("two", Some("21".to_owned()))),
        "the second takes over"
    );
    two.stop().await;
    Outside::connect().await.clean_up(names).await;
}

#[tokio::test]
async fn shutdown_finishes_the_delivery_at_hand_and_returns_the_rest() {
    let server = url("ROWLOCK_TEST_AMQP");
    let names = Names::new();
    let (seen, mut deliveries) = mpsc::unbounded_channel::<Option<String>>();
    let live = Live::start(&server, names, move |broker, drain| {
        vec![broker.consume(names.queue, 10, move |delivery| {
            let (seen, drain) = (seen.clone(), drain.clone());
            async move {
                seen.send(delivery.message_id)
                    .map_err(|error| HandlerError::Reject(error.to_string()))?;
                drain.cancelled().await;
                Ok(())
            }
        })]
    })
    .await;
    for id in ["at hand", "prefetched"] {
        live.broker.publish(names.message(id)).await.expect("confirmed");
    }
    assert_eq!(deliveries.recv().await, Some(Some("at hand".to_owned())));
    live.stop().await;

    let outside = Outside::connect().await;
    let left = outside.take(names.queue).await.expect("the prefetched message is back");
    assert_eq!(
        left.properties
            .message_id()
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("prefetched")
    );
    assert!(
        outside.take(names.queue).await.is_none(),
        "the finished one is acknowledged"
    );
    outside.clean_up(names).await;
}
