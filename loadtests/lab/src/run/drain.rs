//! Waiting until the services' queues are empty.

use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::Instant;

use crate::facts::Facts;

/// A healthy consumer empties what a run leaves behind in a few seconds; the published one took ten.
const BOUND: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Waits until no message is ready in any queue that a service consumes.
///
/// # Errors
/// Messages are left after a minute, or the broker cannot be asked.
pub(super) async fn wait(stack: &Stack) -> anyhow::Result<()> {
    let deadline = Instant::now() + BOUND;
    let broker = Broker::connect(stack).await?;
    loop {
        let left = broker.ready().await?;
        if left.is_empty() {
            return broker.close().await;
        }
        if Instant::now() > deadline {
            anyhow::bail!(
                "{} after {} s: is the consumer running?",
                left.join(", "),
                BOUND.as_secs()
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Refuses a broker that still holds messages of an earlier load.
pub(super) async fn expect_empty(stack: &Stack) -> anyhow::Result<()> {
    let broker = Broker::connect(stack).await?;
    let left = broker.ready().await?;
    anyhow::ensure!(left.is_empty(), "{} from an earlier load", left.join(", "));
    broker.close().await
}

struct Broker {
    connection: Connection,
    channel: Channel,
    queues: Vec<String>,
}

impl Broker {
    async fn connect(stack: &Stack) -> anyhow::Result<Self> {
        let connection = Connection::connect(&stack.amqp(), ConnectionProperties::default())
            .await
            .context("the broker does not answer")?;
        let channel = connection.create_channel().await?;
        Ok(Self {
            connection,
            channel,
            queues: Facts::of(stack).queues(),
        })
    }

    /// What is left, for people; empty when nothing is.
    async fn ready(&self) -> anyhow::Result<Vec<String>> {
        let mut left = Vec::new();
        for name in &self.queues {
            let passive = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let queue = self
                .channel
                .queue_declare(name.as_str().into(), passive, FieldTable::default())
                .await?;
            if queue.message_count() > 0 {
                left.push(format!(
                    "{} messages are left in the queue {name}",
                    queue.message_count()
                ));
            }
        }
        Ok(left)
    }

    async fn close(&self) -> anyhow::Result<()> {
        Ok(self.connection.close(200, "done".into()).await?)
    }
}
