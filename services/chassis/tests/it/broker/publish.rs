//! Publishing: confirmed, routed, bounded in time.

use std::time::{Duration, Instant};

use chassis::{
    broker::{Broker, Message, PublishError},
    service::StartError,
};
use lapin::types::AMQPValue;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing::{Instrument, instrument::WithSubscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

use super::{Live, Names, Outside, broker_config};
use crate::servers::{self, Forwarder, redirect, unique, url};

const BOUND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmed_message_is_in_the_queue_with_its_id_and_its_trace() {
    let traces = SdkTracerProvider::builder().build();
    opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
    let subscriber =
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(traces.tracer("it")));
    let names = Names::new();
    let live = Live::start(&url("ROWLOCK_TEST_AMQP"), names, |_, _| Vec::new()).await;
    let broker = live.broker.clone();

    let dispatch = tracing::Dispatch::new(subscriber);
    let span = tracing::dispatcher::with_default(&dispatch, || tracing::info_span!("request"));
    let trace_id = span.context().span().span_context().trace_id().to_string();
    async { broker.publish(names.message("tour-1")).await }
        .with_subscriber(dispatch)
        .instrument(span)
        .await
        .expect("confirmed");

    let outside = Outside::connect().await;
    let delivery = outside
        .take(names.queue)
        .await
        .expect("a confirmed message is there at once");
    assert_eq!(
        delivery
            .properties
            .message_id()
            .as_ref()
            .map(ToString::to_string)
            .as_deref(),
        Some("tour-1")
    );
    assert_eq!(
        *delivery.properties.delivery_mode(),
        Some(2),
        "it survives a restart of the broker"
    );
    assert_eq!(delivery.data, br#"{"id":"tour-1"}"#);
    let headers = delivery.properties.headers().clone().expect("headers");
    let Some(AMQPValue::LongString(traceparent)) = headers.inner().get("traceparent") else {
        panic!("no traceparent in {headers:?}");
    };
    assert!(
        traceparent.to_string().contains(&trace_id),
        "{traceparent} is not of trace {trace_id}"
    );
    live.stop().await;
    outside.clean_up(names).await;
}

#[tokio::test]
async fn a_message_that_no_queue_takes_is_an_error_and_the_others_are_not() {
    let names = Names::new();
    let live = Live::start(&url("ROWLOCK_TEST_AMQP"), names, |_, _| Vec::new()).await;
    let publishes = (0..60).map(|n| {
        let mut message = names.message(&format!("m{n}"));
        let lost = n % 3 == 0;
        if lost {
            message.routing_key = "nobody.listens";
        }
        let broker = live.broker.clone();
        async move { (lost, broker.publish(message).await) }
    });
    // At once, because telling which of many publishes came back is the difficult part.
    for (lost, outcome) in futures::future::join_all(publishes).await {
        match outcome {
            Ok(()) => assert!(!lost, "a message without a queue was reported as published"),
            Err(PublishError::Unroutable { .. }) => assert!(lost, "a routed message was reported as unroutable"),
            Err(error) => panic!("{error}"),
        }
    }
    let nowhere = Message {
        exchange: unique("it.missing"),
        ..names.message("m")
    };
    let outcome = live.broker.publish(nowhere).await;
    assert!(
        matches!(&outcome, Err(PublishError::Unroutable { .. })),
        "no such exchange: {outcome:?}"
    );
    live.broker
        .publish(names.message("after"))
        .await
        .expect("a missing exchange spoils nothing");
    live.stop().await;
    Outside::connect().await.clean_up(names).await;
}

#[tokio::test]
async fn publishing_outlives_a_cut_connection() {
    let server = url("ROWLOCK_TEST_AMQP");
    let hop = Forwarder::to(&server).await;
    let names = Names::new();
    let live = Live::start(&redirect(&server, hop.port), names, |_, _| Vec::new()).await;
    live.until_ready(true).await;
    live.broker.publish(names.message("before")).await.expect("confirmed");

    for outage in ["first", "second"] {
        hop.cut();
        let started = Instant::now();
        let outcome = live.broker.publish(names.message("lost")).await;
        assert!(
            matches!(&outcome, Err(PublishError::Unavailable { .. })),
            "{outage} outage: {outcome:?}"
        );
        assert!(
            started.elapsed() >= BOUND && started.elapsed() < 10 * BOUND,
            "{:?}",
            started.elapsed()
        );
        live.until_ready(false).await;

        hop.open();
        live.until_ready(true).await;
        live.broker
            .publish(names.message(outage))
            .await
            .expect("confirmed on the new connection");
    }

    let outside = Outside::connect().await;
    let mut ids = Vec::new();
    while let Some(delivery) = outside.take(names.queue).await {
        ids.push(
            delivery
                .properties
                .message_id()
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        );
    }
    assert_eq!(ids, ["before", "first", "second"]);
    live.stop().await;
    outside.clean_up(names).await;
}

#[tokio::test]
async fn what_is_published_once_is_not_sent_again_when_its_connection_breaks() {
    let server = url("ROWLOCK_TEST_AMQP");
    let hop = Forwarder::to(&server).await;
    let names = Names::new();
    let live = Live::start(&redirect(&server, hop.port), names, |_, _| Vec::new()).await;
    live.until_ready(true).await;

    hop.stall();
    let (outcome, ()) = futures::join!(live.broker.publish_once(names.message("once")), async { hop.cut() });
    assert!(matches!(&outcome, Err(PublishError::Broken { .. })), "{outcome:?}");
    live.until_ready(false).await;
    hop.open();
    live.until_ready(true).await;
    live.broker
        .publish_once(names.message("after"))
        .await
        .expect("confirmed");

    let outside = Outside::connect().await;
    let first = outside.take(names.queue).await.expect("it was confirmed");
    let id = first.properties.message_id().as_ref().map(ToString::to_string);
    assert_eq!(id.as_deref(), Some("after"));
    live.stop().await;
    outside.clean_up(names).await;
}

#[tokio::test]
async fn a_broker_that_falls_silent_costs_a_publish_no_more_than_the_bound() {
    let server = url("ROWLOCK_TEST_AMQP");
    let hop = Forwarder::to(&server).await;
    let names = Names::new();
    let live = Live::start(&redirect(&server, hop.port), names, |_, _| Vec::new()).await;
    live.broker.publish(names.message("before")).await.expect("confirmed");

    hop.stall();
    let started = Instant::now();
    let outcome = live.broker.publish(names.message("unanswered")).await;
    assert!(matches!(&outcome, Err(PublishError::Timeout { .. })), "{outcome:?}");
    assert!(
        started.elapsed() >= BOUND && started.elapsed() < 10 * BOUND,
        "{:?}",
        started.elapsed()
    );

    hop.open();
    live.broker
        .publish(names.message("after"))
        .await
        .expect("the same connection goes on");
    live.stop().await;
    Outside::connect().await.clean_up(names).await;
}

#[tokio::test]
async fn a_service_starts_without_its_broker_and_connects_when_it_comes() {
    let server = url("ROWLOCK_TEST_AMQP");
    let hop = Forwarder::to(&server).await;
    hop.cut();
    let names = Names::new();
    let live = Live::start(&redirect(&server, hop.port), names, |_, _| Vec::new()).await;
    let (ready, body) = live.ready().await;
    assert!(!ready && body.contains("rabbitmq"), "{body}");
    hop.open();
    live.until_ready(true).await;
    live.broker.publish(names.message("m")).await.expect("confirmed");
    live.stop().await;
    Outside::connect().await.clean_up(names).await;
}

#[tokio::test]
async fn a_url_that_is_no_broker_is_a_configuration_error() {
    let names = Names::new();
    let error = Broker::connect(&broker_config("http://nothing"), names.topology(), &servers::chassis()).err();
    assert!(matches!(error, Some(StartError::Config(text)) if text.contains("amqp_url")));
}
