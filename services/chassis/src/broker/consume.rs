//! Consuming: one delivery after the other, acknowledged when handled, resubscribed after every outage.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use futures::StreamExt;
use lapin::{
    Channel, Consumer,
    message::Delivery as Received,
    options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    types::FieldTable,
};
use opentelemetry::{KeyValue, metrics::Histogram};
use tracing::Instrument;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{
    Broker, Shared, headers,
    session::{CLOSE_TIMEOUT, Session},
    supervise,
};
use crate::{service::Background, telemetry};

/// A delivery that could not be handled goes back to the queue after this: at once would be a busy loop through the
/// broker.
const REQUEUE_DELAY: Duration = Duration::from_millis(500);

/// A message handed to a consumer. It may come more than once: consumers go by the message id.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Identity given by the publisher.
    pub message_id: Option<String>,
    /// Key it was published with.
    pub routing_key: String,
    /// Whether the broker delivered it before.
    pub redelivered: bool,
    /// What was published.
    pub body: Vec<u8>,
}

/// What to do with a delivery that was not handled.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// It may work later: back to the queue.
    #[error("to be delivered again: {0}")]
    Retry(String),
    /// It never will: dropped, or dead-lettered where the queue has such an exchange.
    #[error("given up: {0}")]
    Reject(String),
}

impl Broker {
    /// Consumes `queue` with at most `prefetch` unacknowledged messages underway, one `handler` at a time, until the
    /// service drains; the delivery at hand is finished then, the prefetched ones go back to the queue.
    pub fn consume<F, Fut>(&self, queue: &'static str, prefetch: u16, handler: F) -> Background
    where
        F: Fn(Delivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        let shared = Arc::clone(&self.0);
        let consumers = shared.consumers.clone();
        Background::new(queue, consumers.track_future(run(shared, queue, prefetch, handler)))
    }
}

async fn run<F, Fut>(shared: Arc<Shared>, queue: &'static str, prefetch: u16, handler: F) -> anyhow::Result<()>
where
    F: Fn(Delivery) -> Fut,
    Fut: Future<Output = Result<(), HandlerError>>,
{
    let mut delays = supervise::backoff();
    loop {
        let session = tokio::select! {
            session = shared.session(None) => session,
            () = shared.drain.cancelled() => return Ok(()),
        };
        let subscribed = tokio::select! {
            subscribed = subscribe(&shared, &session, queue, prefetch) => subscribed,
            () = shared.drain.cancelled() => return Ok(()),
        };
        match subscribed {
            Ok((channel, consumer)) => {
                tracing::info!(queue, "consuming");
                delays = supervise::backoff();
                if drained(&shared, queue, &channel, consumer, &handler).await {
                    return Ok(());
                }
                tracing::warn!(queue, "the subscription ended; subscribing again");
            }
            Err(error) => tracing::warn!(queue, %error, "cannot subscribe; trying again"),
        }
        shared.lost.notify_one();
        let delay = delays.next().unwrap_or(supervise::LONGEST_DELAY);
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shared.drain.cancelled() => return Ok(()),
        }
    }
}

async fn subscribe(
    shared: &Shared,
    session: &Session,
    queue: &str,
    prefetch: u16,
) -> lapin::Result<(Channel, Consumer)> {
    let channel = session.channel().await?;
    // A queue somebody deleted ends the subscription but not the connection, so it is declared again here.
    shared.topology.declare(&channel).await?;
    channel.basic_qos(prefetch, BasicQosOptions::default()).await?;
    let tag = format!("{}:{queue}", shared.connection_name);
    let consumer = channel
        .basic_consume(
            queue.into(),
            tag.into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        )
        .await?;
    Ok((channel, consumer))
}

/// Handles deliveries until the service drains (true) or the subscription is gone (false).
async fn drained<F, Fut>(
    shared: &Shared,
    queue: &'static str,
    channel: &Channel,
    mut consumer: Consumer,
    handler: &F,
) -> bool
where
    F: Fn(Delivery) -> Fut,
    Fut: Future<Output = Result<(), HandlerError>>,
{
    loop {
        let next = tokio::select! {
            biased;
            () = shared.drain.cancelled() => {
                match tokio::time::timeout(CLOSE_TIMEOUT, leave(channel, &consumer)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::debug!(queue, %error, "the subscription did not end politely"),
                    Err(_) => tracing::debug!(queue, "the broker did not answer the end of the subscription"),
                }
                return true;
            }
            next = consumer.next() => next,
        };
        let settled = match next {
            Some(Ok(received)) => handle(shared, queue, received, handler).await,
            Some(Err(error)) => Err(error),
            None => return false,
        };
        if let Err(error) = settled {
            tracing::warn!(queue, %error, "the subscription broke");
            return false;
        }
    }
}

async fn leave(channel: &Channel, consumer: &Consumer) -> lapin::Result<()> {
    channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default())
        .await?;
    channel.close(200, "the service drains".into()).await
}

async fn handle<F, Fut>(shared: &Shared, queue: &'static str, received: Received, handler: &F) -> lapin::Result<()>
where
    F: Fn(Delivery) -> Fut,
    Fut: Future<Output = Result<(), HandlerError>>,
{
    let Received {
        routing_key,
        redelivered,
        properties,
        data,
        acker,
        ..
    } = received;
    let delivery = Delivery {
        message_id: properties.message_id().as_ref().map(ToString::to_string),
        routing_key: routing_key.to_string(),
        redelivered,
        body: data,
    };
    let span = tracing::info_span!(
        "process",
        otel.name = format!("process {queue}"),
        otel.kind = "consumer",
        messaging.system = "rabbitmq",
        messaging.operation.name = "process",
        messaging.operation.type = "process",
        messaging.destination.name = queue,
        messaging.message.id = delivery.message_id,
    );
    if let Err(error) = span.set_parent(headers::extract(properties.headers().as_ref())) {
        tracing::debug!(%error, "the delivery's trace is not continued");
    }
    let started = Instant::now();
    let outcome = handler(delivery).instrument(span).await;
    record(queue, started.elapsed(), outcome.as_ref().err());
    match outcome {
        Ok(()) => acker.ack(BasicAckOptions::default()).await?,
        Err(HandlerError::Reject(reason)) => {
            tracing::error!(queue, reason, "a message is given up");
            acker
                .nack(BasicNackOptions {
                    requeue: false,
                    ..Default::default()
                })
                .await?
        }
        Err(HandlerError::Retry(reason)) => {
            tracing::warn!(queue, reason, "a message goes back to its queue");
            tokio::select! {
                () = tokio::time::sleep(REQUEUE_DELAY) => {}
                () = shared.drain.cancelled() => {}
            }
            acker
                .nack(BasicNackOptions {
                    requeue: true,
                    ..Default::default()
                })
                .await?
        }
    };
    Ok(())
}

fn record(queue: &'static str, took: Duration, error: Option<&HandlerError>) {
    static DURATION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
        telemetry::duration_histogram("messaging.process.duration", "Time a consumer took for a delivery")
    });
    let mut attributes = vec![
        KeyValue::new("messaging.system", "rabbitmq"),
        KeyValue::new("messaging.operation.name", "process"),
        KeyValue::new("messaging.destination.name", queue),
    ];
    attributes.extend(error.map(|error| {
        KeyValue::new(
            "error.type",
            match error {
                HandlerError::Retry(_) => "retry",
                HandlerError::Reject(_) => "reject",
            },
        )
    }));
    DURATION.record(took.as_secs_f64(), &attributes);
}
