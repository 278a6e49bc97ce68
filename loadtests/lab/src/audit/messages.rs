//! A second receiver of every message: an extra queue bound to the services' exchanges, read when the load is over.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties};

use crate::facts::Messages;

/// A message confirmed to its publisher is in every bound queue; this long without one means that there is none left.
const QUIET: Duration = Duration::from_millis(500);

/// The queue. It belongs to this connection and goes with it, so that nothing is left on the broker.
#[derive(Debug)]
pub(super) struct Witness {
    connection: Connection,
    channel: Channel,
    queue: String,
}

impl Witness {
    /// Declares the queue and binds it to every exchange, for all routing keys.
    pub(super) async fn bind(url: &str, messages: &[Messages]) -> anyhow::Result<Self> {
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .context("the audit cannot reach the broker")?;
        let channel = connection.create_channel().await?;
        let exclusive = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel
            .queue_declare("".into(), exclusive, FieldTable::default())
            .await?
            .name()
            .to_string();
        for Messages { exchange, .. } in messages {
            channel
                .queue_bind(
                    queue.as_str().into(),
                    exchange.as_str().into(),
                    "#".into(),
                    QueueBindOptions::default(),
                    FieldTable::default(),
                )
                .await
                .with_context(|| format!("the audit cannot bind to the exchange {exchange}"))?;
        }
        Ok(Self {
            connection,
            channel,
            queue,
        })
    }

    /// Message id → copies, of everything that arrived.
    pub(super) async fn collect(self) -> anyhow::Result<BTreeMap<String, u32>> {
        let no_ack = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let mut messages = self
            .channel
            .basic_consume(
                self.queue.as_str().into(),
                "audit".into(),
                no_ack,
                FieldTable::default(),
            )
            .await?;
        let mut delivered: BTreeMap<String, u32> = BTreeMap::new();
        while let Ok(Some(delivery)) = tokio::time::timeout(QUIET, messages.next()).await {
            let delivery = delivery.context("the broker ended the audit's queue")?;
            let id = delivery
                .properties
                .message_id()
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            *delivered.entry(id).or_default() += 1;
        }
        self.connection.close(200, "audited".into()).await?;
        Ok(delivered)
    }
}
