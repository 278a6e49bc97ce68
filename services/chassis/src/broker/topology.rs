//! The exchanges and queues a service needs, as data; declared anew on every connection.

use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

/// Everything a service declares.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Declared first.
    pub exchanges: Vec<Exchange>,
    /// Declared and bound after the exchanges.
    pub queues: Vec<Queue>,
}

/// A durable topic exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Name at the broker.
    pub name: &'static str,
}

/// A durable queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// Name at the broker.
    pub name: &'static str,
    /// Whether only one of its consumers is served at a time, the others standing by.
    pub single_active_consumer: bool,
    /// Pairs of exchange and routing key.
    pub bindings: Vec<(&'static str, &'static str)>,
}

impl Topology {
    /// Declares all of it; what exists with the same properties stays as it is.
    pub(super) async fn declare(&self, channel: &Channel) -> lapin::Result<()> {
        for exchange in &self.exchanges {
            channel
                .exchange_declare(
                    exchange.name.into(),
                    ExchangeKind::Topic,
                    ExchangeDeclareOptions {
                        durable: true,
                        ..Default::default()
                    },
                    FieldTable::default(),
                )
                .await?;
        }
        for queue in &self.queues {
            let mut arguments = FieldTable::default();
            if queue.single_active_consumer {
                arguments.insert("x-single-active-consumer".into(), AMQPValue::Boolean(true));
            }
            channel
                .queue_declare(
                    queue.name.into(),
                    QueueDeclareOptions {
                        durable: true,
                        ..Default::default()
                    },
                    arguments,
                )
                .await?;
            for (exchange, routing_key) in &queue.bindings {
                channel
                    .queue_bind(
                        queue.name.into(),
                        (*exchange).into(),
                        (*routing_key).into(),
                        QueueBindOptions::default(),
                        FieldTable::default(),
                    )
                    .await?;
            }
        }
        Ok(())
    }
}
