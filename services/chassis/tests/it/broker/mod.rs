//! Publishing and consuming against a real RabbitMQ, at times behind a hop that is cut.

mod consume;
mod publish;

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex},
    time::{Duration, Instant},
};

use chassis::{
    broker::{Broker, BrokerConfig, Exchange, Message, Queue, Topology},
    config::{self, Common},
    readiness::Kind,
    service::{self, App, Background, Chassis, Drain, Service, StartError},
};
use lapin::{
    Connection, ConnectionProperties,
    options::{BasicGetOptions, QueueDeleteOptions},
};

use crate::servers::{unique, url};

/// An exchange with one queue that takes every `created`, under names of this test's own.
#[derive(Clone, Copy)]
struct Names {
    exchange: &'static str,
    queue: &'static str,
}

impl Names {
    fn new() -> Self {
        Self {
            exchange: unique("it.events"),
            queue: unique("it.created"),
        }
    }

    fn topology(self) -> Topology {
        Topology {
            exchanges: vec![Exchange { name: self.exchange }],
            queues: vec![Queue {
                name: self.queue,
                single_active_consumer: true,
                bindings: vec![(self.exchange, "created")],
            }],
        }
    }

    fn message(self, id: &str) -> Message {
        Message {
            exchange: self.exchange,
            routing_key: "created",
            message_id: id.to_owned(),
            body: format!(r#"{{"id":"{id}"}}"#).into_bytes(),
        }
    }
}

fn broker_config(url: &str) -> BrokerConfig {
    let pairs = [("IT_AMQP_URL", url), ("IT_PUBLISH_TIMEOUT", "1s")];
    config::parse_from("it", &pairs).expect("a good configuration")
}

/// A service made of a broker connection and consumers, run by the chassis so that shutdown is the real one.
struct Live {
    broker: Broker,
    running: service::Running,
}

struct Messaging;

#[derive(Clone, clap::Args, serde::Serialize)]
struct MessagingConfig {
    /// Where the test left what is to be built, and finds what was.
    #[arg(long)]
    order: String,
}

type Consumers = Box<dyn FnOnce(&Broker, Drain) -> Vec<Background> + Send>;

struct Order {
    config: BrokerConfig,
    topology: Topology,
    consumers: Consumers,
    built: Option<Broker>,
}

static ORDERS: LazyLock<Mutex<HashMap<String, Order>>> = LazyLock::new(Mutex::default);

impl Service for Messaging {
    const NAME: &'static str = "messaging";
    type Config = MessagingConfig;

    async fn build(config: MessagingConfig, cx: Chassis) -> Result<App, StartError> {
        let mut orders = ORDERS.lock().expect("not poisoned");
        let order = orders.get_mut(&config.order).expect("ordered");
        let (broker, connection) = Broker::connect(&order.config, order.topology.clone(), &cx)?;
        let consumers = std::mem::replace(&mut order.consumers, Box::new(|_, _| Vec::new()));
        let mut background = consumers(&broker, cx.drain);
        background.push(connection);
        let dependencies = vec![broker.dependency(Kind::Required)];
        order.built = Some(broker);
        Ok(App {
            router: axum::Router::new(),
            dependencies,
            background,
        })
    }
}

impl Live {
    async fn start(
        url: &str,
        names: Names,
        consumers: impl FnOnce(&Broker, Drain) -> Vec<Background> + Send + 'static,
    ) -> Self {
        let key = unique("order");
        let order = Order {
            config: broker_config(url),
            topology: names.topology(),
            consumers: Box::new(consumers),
            built: None,
        };
        ORDERS.lock().expect("not poisoned").insert(key.to_owned(), order);
        let config = config::parse_from("messaging", &[("MESSAGING_ORDER", key)]).expect("a good configuration");
        let running = service::start::<Messaging>(Common::default(), config)
            .await
            .expect("started");
        let order = ORDERS.lock().expect("not poisoned").remove(key).expect("ordered");
        Self {
            broker: order.built.expect("built"),
            running,
        }
    }

    async fn ready(&self) -> (bool, String) {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let url = format!("http://{}/readyz", self.running.admin_addr);
        let response = client.get(url).send().await.expect("an answer");
        (response.status().is_success(), response.text().await.expect("a body"))
    }

    async fn until_ready(&self, wanted: bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.ready().await.0 != wanted {
            assert!(Instant::now() < deadline, "/readyz never turned to {wanted}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn stop(self) {
        self.running.shutdown().await.expect("drained");
    }
}

/// The other side of the broker, as any client sees it.
struct Outside(Connection);

impl Outside {
    async fn connect() -> Self {
        let url = url("ROWLOCK_TEST_AMQP");
        Self(
            Connection::connect(&url, ConnectionProperties::default())
                .await
                .expect("the test broker answers"),
        )
    }

    /// The oldest message of a queue, taken off it.
    async fn take(&self, queue: &str) -> Option<lapin::message::Delivery> {
        let channel = self.0.create_channel().await.expect("a channel");
        let message = channel
            .basic_get(queue.into(), BasicGetOptions { no_ack: true })
            .await
            .expect("an answer");
        message.map(|message| message.delivery)
    }

    async fn clean_up(&self, names: Names) {
        let channel = self.0.create_channel().await.expect("a channel");
        channel
            .queue_delete(names.queue.into(), QueueDeleteOptions::default())
            .await
            .expect("deleted");
        channel
            .exchange_delete(names.exchange.into(), Default::default())
            .await
            .expect("deleted");
    }
}
