//! Depth and consumers of the broker's queues, over AMQP: cheap for the broker, and the same on every version.

use std::collections::BTreeMap;

use anyhow::Context;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

/// A connection that looks at queues.
pub(crate) struct Queues {
    connection: Connection,
    names: Vec<String>,
}

/// A queue at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Messages ready to be delivered.
    pub(crate) ready: u32,
    pub(crate) consumers: u32,
}

impl Queues {
    /// Connects to the broker.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn connect(url: &str, names: Vec<String>) -> anyhow::Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .context("the lab cannot reach the broker")?;
        Ok(Self { connection, names })
    }

    /// Every queue, by name.
    ///
    /// # Errors
    /// A queue is not there, or the broker is gone.
    pub(crate) async fn look(&self) -> anyhow::Result<BTreeMap<String, Depth>> {
        // A passive declare of a queue that is gone closes its channel: each look has a channel of its own.
        let channel = self.connection.create_channel().await?;
        let mut depths = BTreeMap::new();
        for name in &self.names {
            let passive = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            let queue = channel
                .queue_declare(name.as_str().into(), passive, FieldTable::default())
                .await?;
            let depth = Depth {
                ready: queue.message_count(),
                consumers: queue.consumer_count(),
            };
            depths.insert(name.clone(), depth);
        }
        channel.close(200, "looked".into()).await?;
        Ok(depths)
    }

    /// Ends the connection.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        Ok(self.connection.close(200, "done".into()).await?)
    }
}
