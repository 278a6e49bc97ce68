//! Exchange and queue of its own for each test, and a tap that sees what is published.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, Consumer, ExchangeKind};
use uuid::Uuid;

use super::{block_on, server};

/// Names at the broker, deleted at the end of the test.
pub(crate) struct Names {
    pub(crate) exchange: String,
    pub(crate) queue: String,
    pub(crate) touches: String,
}

impl Names {
    pub(crate) fn new() -> Self {
        let id = Uuid::new_v4().simple();
        Self {
            exchange: format!("test.{id}.events"),
            queue: format!("test.{id}.created"),
            touches: format!("test.{id}.touched"),
        }
    }

    pub(crate) fn amqp() -> String {
        server("ROWLOCK_TEST_AMQP")
    }

    /// The broker's `host:port`, to be reached over a link.
    pub(crate) fn server_addr() -> String {
        let url = Self::amqp();
        let rest = url.rsplit('@').next().expect("split gives something").to_owned();
        rest.split('/').next().expect("split gives something").to_owned()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let (exchange, queues) = (self.exchange.clone(), [self.queue.clone(), self.touches.clone()]);
        block_on(async move {
            let (_connection, channel) = channel().await;
            for queue in queues {
                let gone = channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await;
                gone.expect("deleting what is not there is no error");
            }
            let gone = channel
                .exchange_delete(exchange.into(), ExchangeDeleteOptions::default())
                .await;
            gone.expect("deleting what is not there is no error");
        });
    }
}

/// A queue beside the service's own that gets every message of the exchange.
pub(crate) struct MessageTap {
    consumer: Consumer,
    seen: BTreeMap<String, i32>,
    /// Ids as they came first.
    order: Vec<String>,
    _connection: Connection,
}

impl MessageTap {
    pub(crate) async fn on(names: &Names) -> Self {
        let (connection, channel) = channel().await;
        let durable = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        channel
            .exchange_declare(
                names.exchange.clone().into(),
                ExchangeKind::Topic,
                durable,
                FieldTable::default(),
            )
            .await
            .expect("the exchange is declared");
        let exclusive = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = channel
            .queue_declare("".into(), exclusive, FieldTable::default())
            .await
            .expect("a queue");
        let (queue, exchange) = (queue.name().clone(), names.exchange.clone());
        channel
            .queue_bind(
                queue.clone(),
                exchange.into(),
                "#".into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .expect("the queue is bound");
        let consumer = channel
            .basic_consume(
                queue,
                "tap".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await
            .expect("the queue is consumed");
        Self {
            consumer,
            seen: BTreeMap::new(),
            order: Vec::new(),
            _connection: connection,
        }
    }

    /// Copies of each message id, once `copies` messages have come in all.
    pub(crate) async fn messages(&mut self, copies: i32) -> &BTreeMap<String, i32> {
        while self.seen.values().sum::<i32>() < copies {
            let next = tokio::time::timeout(Duration::from_secs(30), self.next()).await;
            next.expect("a message within 30 s");
        }
        &self.seen
    }

    /// Copies of each message id, once all of these have come and no other follows at once.
    pub(crate) async fn messages_of(&mut self, ids: impl Iterator<Item = String>) -> &BTreeMap<String, i32> {
        for id in ids {
            while !self.seen.contains_key(&id) {
                let next = tokio::time::timeout(Duration::from_secs(30), self.next()).await;
                next.unwrap_or_else(|_| panic!("no message {id} within 30 s"));
            }
        }
        while tokio::time::timeout(Duration::from_millis(100), self.next())
            .await
            .is_ok()
        {}
        &self.seen
    }

    /// Ids of the messages that came, in the order in which they did for the first time.
    pub(crate) fn order(&self) -> &[String] {
        &self.order
    }

    async fn next(&mut self) {
        let next = self.consumer.next().await;
        let delivery = next.expect("the tap is open").expect("a delivery");
        let id = delivery.properties.message_id().clone().expect("messages have an id");
        let copies = self.seen.entry(id.to_string()).or_default();
        *copies += 1;
        if *copies == 1 {
            self.order.push(id.to_string());
        }
        let acknowledged = delivery.ack(BasicAckOptions::default()).await;
        acknowledged.expect("it is acknowledged");
    }
}

async fn channel() -> (Connection, Channel) {
    let connection = Connection::connect(&Names::amqp(), ConnectionProperties::default())
        .await
        .expect("the broker answers");
    let channel = connection.create_channel().await.expect("a channel");
    (connection, channel)
}
