//! A second receiver of every message: an extra queue bound to the services' exchanges, read when the load is over.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};
use uuid::Uuid;

use crate::facts::Messages;
use crate::queues;

/// A message confirmed to its publisher is in every bound queue; this long without one means that there is none left.
const QUIET: Duration = Duration::from_millis(500);
/// This long without one means that none of those that are still to come will: a relay has found its broker again by then.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(10);

/// The queue that outlives a crash of the broker. One name: a second audit of the same broker is one that was cut off.
const DURABLE: &str = "rowlock.audit";
/// The broker forgets such a queue when nobody has come back to it for a day, milliseconds.
const FORGOTTEN_AFTER: i32 = 24 * 3600 * 1000;

/// The queue.
#[derive(Debug)]
pub(super) struct Witness {
    queue: String,
    kept: Kept,
}

/// What keeps the queue until it is read.
#[derive(Debug)]
enum Kept {
    /// It belongs to this connection and goes with it, so that nothing is left on the broker.
    ByConnection(Box<(Connection, Channel)>),
    /// It is on the broker's disk, because the broker is to crash; holds the broker's URL.
    OnDisk(String),
}

impl Witness {
    /// Declares the queue and binds it to every exchange, for all routing keys. With `crash` it outlives the broker, for the
    /// price of a disk write a message.
    pub(super) async fn bind(url: &str, messages: &[Messages], crash: bool) -> anyhow::Result<Self> {
        let (connection, channel) = connect(url).await?;
        let queue = if crash {
            durable(&channel).await?
        } else {
            exclusive(&channel).await?
        };
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
        let kept = if crash {
            connection.close(200, "bound".into()).await?;
            Kept::OnDisk(url.to_owned())
        } else {
            Kept::ByConnection(Box::new((connection, channel)))
        };
        Ok(Self { queue, kept })
    }

    /// Message id → copies, of everything that arrived. Those of the tours in `to_come` are waited for.
    pub(super) async fn collect(self, to_come: HashSet<Uuid>) -> anyhow::Result<BTreeMap<String, u32>> {
        let (connection, channel) = match self.kept {
            Kept::ByConnection(both) => *both,
            Kept::OnDisk(url) => connect(&url).await?,
        };
        let delivered = drain(&channel, &self.queue, to_come).await?;
        channel
            .queue_delete(self.queue.as_str().into(), QueueDeleteOptions::default())
            .await?;
        connection.close(200, "audited".into()).await?;
        Ok(delivered)
    }
}

async fn connect(url: &str) -> anyhow::Result<(Connection, Channel)> {
    let connection = queues::connect(url).await?;
    let channel = connection.create_channel().await?;
    Ok((connection, channel))
}

async fn exclusive(channel: &Channel) -> anyhow::Result<String> {
    let options = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    let queue = channel.queue_declare("".into(), options, FieldTable::default()).await?;
    Ok(queue.name().to_string())
}

async fn durable(channel: &Channel) -> anyhow::Result<String> {
    channel
        .queue_delete(DURABLE.into(), QueueDeleteOptions::default())
        .await?;
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let mut arguments = FieldTable::default();
    arguments.insert("x-expires".into(), FORGOTTEN_AFTER.into());
    channel.queue_declare(DURABLE.into(), options, arguments).await?;
    Ok(DURABLE.to_owned())
}

async fn drain(channel: &Channel, queue: &str, mut to_come: HashSet<Uuid>) -> anyhow::Result<BTreeMap<String, u32>> {
    let no_ack = BasicConsumeOptions {
        no_ack: true,
        ..BasicConsumeOptions::default()
    };
    let mut messages = channel
        .basic_consume(queue.into(), "audit".into(), no_ack, FieldTable::default())
        .await?;
    let mut delivered: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        let patience = if to_come.is_empty() { QUIET } else { GIVEN_UP_AFTER };
        let Ok(Some(delivery)) = tokio::time::timeout(patience, messages.next()).await else {
            return Ok(delivered);
        };
        let delivery = delivery.context("the broker ended the audit's queue")?;
        let id = delivery
            .properties
            .message_id()
            .as_ref()
            .map_or_else(String::new, ToString::to_string);
        if let Ok(tour) = id.parse() {
            to_come.remove(&tour);
        }
        *delivered.entry(id).or_default() += 1;
    }
}
