//! Depth and consumers of the broker's queues, over AMQP: cheap for the broker, and the same on every version.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};

/// A broker that has not answered a greeting by then hangs.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

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

/// Connects to the broker.
///
/// # Errors
/// It does not answer in time, or refuses.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Connection> {
    let connecting = Connection::connect(url, ConnectionProperties::default());
    let connected = tokio::time::timeout(CONNECTED_WITHIN, connecting).await;
    connected
        .with_context(|| {
            format!(
                "the broker did not answer the lab within {} s",
                CONNECTED_WITHIN.as_secs()
            )
        })?
        .context("the lab cannot reach the broker")
}

impl Queues {
    /// Connects to the broker.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn connect(url: &str, names: Vec<String>) -> anyhow::Result<Self> {
        let connection = connect(url).await?;
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
