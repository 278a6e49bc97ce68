//! Depth and consumers of the broker's queues, over AMQP: cheap for the broker, and the same on every version.

use anyhow::Context;
use async_trait::async_trait;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

use super::Probe;
use crate::events::{QueueSample, Sample};

pub(super) struct Queue {
    connection: Connection,
    queues: Vec<String>,
}

impl Queue {
    pub(super) async fn connect(url: &str, queues: Vec<String>) -> anyhow::Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .context("the lab cannot reach the broker")?;
        Ok(Self { connection, queues })
    }
}

#[async_trait]
impl Probe for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        // A passive declare of a queue that is gone closes its channel: each sample has a channel of its own.
        let channel = self.connection.create_channel().await?;
        let mut sample = QueueSample::default();
        for name in &self.queues {
            let passive = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let queue = channel
                .queue_declare(name.as_str().into(), passive, FieldTable::default())
                .await?;
            sample.ready.insert(name.clone(), queue.message_count());
            sample.consumers.insert(name.clone(), queue.consumer_count());
        }
        channel.close(200, "sampled".into()).await?;
        Ok(Sample::Queue(sample))
    }
}
