//! Publishing: persistent, mandatory, confirmed, bounded in time.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use lapin::{BasicProperties, Confirmation};
use opentelemetry::{KeyValue, metrics::Histogram};
use tracing::Instrument;

use super::{Broker, headers};
use crate::telemetry;

/// AMQP's number for "write it to disk".
const PERSISTENT: u8 = 2;

/// What to publish.
#[derive(Clone, Debug)]
pub struct Message {
    /// Exchange it goes to.
    pub exchange: &'static str,
    /// Key the exchange routes it by.
    pub routing_key: &'static str,
    /// Identity for consumers, who drop what they have seen: delivery is at least once.
    pub message_id: String,
    /// JSON.
    pub body: Vec<u8>,
}

/// Why the broker did not take charge of a message. In every case but [`PublishError::Unroutable`] it may have arrived
/// all the same; publishing it again is safe for consumers that go by the message id.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There was no connection to publish on.
    #[error("there is no connection to the broker: {reason}")]
    Unavailable {
        /// What the last attempt to connect ran into.
        reason: String,
    },
    /// The connection broke before the confirm, and the message was to be sent once only.
    #[error("the connection to the broker broke before it confirmed the message: {reason}")]
    Broken {
        /// What became of the connection.
        reason: String,
    },
    /// The message was sent and not confirmed in time.
    #[error("the broker did not confirm the message within {bound:?}")]
    Timeout {
        /// The configured bound.
        bound: Duration,
    },
    /// No queue is bound for this exchange and key, or the exchange does not exist.
    #[error("the broker cannot route the message to any queue: {reason}")]
    Unroutable {
        /// The broker's words.
        reason: String,
    },
    /// The broker refused the message, because a queue failed or is full.
    #[error("the broker refused the message")]
    Nacked,
}

impl PublishError {
    /// Low-cardinality name, for metrics.
    fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::Broken { .. } => "broken",
            Self::Timeout { .. } => "timeout",
            Self::Unroutable { .. } => "unroutable",
            Self::Nacked => "nacked",
        }
    }
}

/// Whether a message whose connection broke before the confirm is sent on the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    WithinBound,
    Never,
}

impl Broker {
    /// Publishes `message` and waits until the broker has taken charge of it, `publish_timeout` at most.
    ///
    /// A connection that breaks meanwhile does not fail the call: the message is sent again on the next one as long as
    /// the bound allows, so it can arrive twice.
    pub async fn publish(&self, message: Message) -> Result<(), PublishError> {
        self.traced(message, Again::WithinBound).await
    }

    /// The same for a message that may be lost and must not come twice: it is sent once, and a connection that breaks
    /// before the confirm fails the call.
    pub async fn publish_once(&self, message: Message) -> Result<(), PublishError> {
        self.traced(message, Again::Never).await
    }

    async fn traced(&self, message: Message, again: Again) -> Result<(), PublishError> {
        let span = tracing::info_span!(
            "publish",
            otel.name = format!("publish {}", message.exchange),
            otel.kind = "producer",
            messaging.system = "rabbitmq",
            messaging.operation.name = "publish",
            messaging.operation.type = "send",
            messaging.destination.name = message.exchange,
            messaging.rabbitmq.destination.routing_key = message.routing_key,
            messaging.message.id = message.message_id,
        );
        let started = Instant::now();
        let outcome = self.publish_within_bound(&message, again).instrument(span).await;
        record(&message, started.elapsed(), outcome.as_ref().err());
        outcome
    }

    async fn publish_within_bound(&self, message: &Message, again: Again) -> Result<(), PublishError> {
        let bound = self.0.publish_timeout;
        let mut sent = false;
        let attempts = async {
            let mut dead = None;
            loop {
                let session = self.0.session(dead).await;
                sent = true;
                let properties = BasicProperties::default()
                    .with_delivery_mode(PERSISTENT)
                    .with_content_type("application/json".into())
                    .with_message_id(message.message_id.as_str().into())
                    .with_headers(headers::inject());
                let outcome = session
                    .publish(message.exchange, message.routing_key, &message.body, properties)
                    .await;
                match outcome {
                    Ok(confirmation) => return judge(confirmation),
                    Err(error) if error.is_amqp_soft_error() => {
                        return Err(PublishError::Unroutable {
                            reason: error.to_string(),
                        });
                    }
                    Err(error) => {
                        tracing::debug!(%error, "the connection broke while publishing");
                        self.0.lost.notify_one();
                        if again == Again::Never {
                            return Err(PublishError::Broken {
                                reason: error.to_string(),
                            });
                        }
                        dead = Some(session.number());
                    }
                }
                sent = false;
            }
        };
        match tokio::time::timeout(bound, attempts).await {
            Ok(outcome) => outcome,
            Err(_) if sent => Err(PublishError::Timeout { bound }),
            Err(_) => Err(PublishError::Unavailable {
                reason: self.0.down_reason(),
            }),
        }
    }
}

/// A mandatory message that no queue takes comes back *and* is acknowledged: the acknowledgement alone says nothing.
fn judge(confirmation: Confirmation) -> Result<(), PublishError> {
    let acknowledged = confirmation.is_ack();
    match confirmation.take_message() {
        Some(returned) => Err(PublishError::Unroutable {
            reason: returned.reply_text.to_string(),
        }),
        None if acknowledged => Ok(()),
        None => Err(PublishError::Nacked),
    }
}

fn record(message: &Message, took: Duration, error: Option<&PublishError>) {
    static DURATION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
        telemetry::duration_histogram(
            "messaging.client.operation.duration",
            "Time of a publish until the broker's confirm",
        )
    });
    let mut attributes = vec![
        KeyValue::new("messaging.system", "rabbitmq"),
        KeyValue::new("messaging.operation.name", "publish"),
        KeyValue::new("messaging.operation.type", "send"),
        KeyValue::new("messaging.destination.name", message.exchange),
    ];
    attributes.extend(error.map(|error| KeyValue::new("error.type", error.kind())));
    DURATION.record(took.as_secs_f64(), &attributes);
}
