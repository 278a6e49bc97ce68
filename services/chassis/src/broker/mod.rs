//! RabbitMQ: a connection that is rebuilt for ever, confirmed publishing and a consumer that outlives outages.
//!
//! lapin can recover a connection by itself, but a publish in flight while the broker restarts then never resolved in two
//! of three cases. So recovery is ours alone: a lost connection is thrown away whole, which makes lapin fail everything
//! that hangs on it, and a task of ours opens a new one and declares the topology again.

mod consume;
mod headers;
mod publish;
mod session;
mod supervise;
mod topology;

use std::sync::Arc;

use futures::FutureExt;
use lapin::uri::AMQPUri;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::{
    config::{Address, HumanDuration},
    readiness::{Dependency, Kind},
    service::{Background, Chassis, Drain, StartError},
};

pub use consume::{Delivery, HandlerError};
pub use publish::{Message, PublishError};
pub use topology::{Exchange, Queue, Topology};

use session::Session;

/// How to reach the broker.
#[derive(Clone, Debug, clap::Args, serde::Serialize)]
pub struct BrokerConfig {
    /// Broker URL, amqp://user:password@host:port/vhost (the vhost "/" is written %2f).
    #[arg(long)]
    pub amqp_url: Address,
    /// How long a publish may take, from looking for a connection to the broker's confirm.
    #[arg(long, default_value = "5s")]
    pub publish_timeout: HumanDuration,
}

/// The broker as a service sees it. Cloning is cheap; all clones share the connection.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

struct Shared {
    uri: AMQPUri,
    connection_name: String,
    publish_timeout: std::time::Duration,
    topology: Topology,
    link: watch::Sender<Link>,
    /// Told by whoever runs into a dead connection, so that nobody waits for the next check of it.
    lost: tokio::sync::Notify,
    /// Consumers finish their delivery before the connection is closed.
    consumers: TaskTracker,
    drain: Drain,
}

/// What there is to talk to.
#[derive(Clone)]
enum Link {
    Up(Arc<Session>),
    Down { reason: Arc<str> },
}

impl Broker {
    /// Prepares the connection; the background task opens it, declares `topology` each time, and closes it on shutdown
    /// when the consumers are done. Nothing waits here, so a service starts while its broker is away.
    pub fn connect(config: &BrokerConfig, topology: Topology, cx: &Chassis) -> Result<(Self, Background), StartError> {
        let uri = session::uri(config.amqp_url.as_str()).map_err(|reason| {
            StartError::Config(format!(
                "amqp_url is not a broker URL ({reason}); expected amqp://user:password@host:port/vhost"
            ))
        })?;
        let shared = Arc::new(Shared {
            uri,
            connection_name: cx.instance_id.clone(),
            publish_timeout: *config.publish_timeout,
            topology,
            link: watch::Sender::new(Link::Down {
                reason: "not connected yet".into(),
            }),
            lost: tokio::sync::Notify::new(),
            consumers: TaskTracker::new(),
            drain: cx.drain.clone(),
        });
        let background = Background::new("broker", supervise::run(Arc::clone(&shared)));
        Ok((Self(shared), background))
    }

    /// Resolves when the service drains.
    pub(crate) async fn drained(&self) {
        self.0.drain.cancelled().await;
    }

    /// Keeps the connection open, when the service drains, until `task` has ended.
    pub fn while_draining<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        self.0.consumers.track_future(task)
    }

    /// Whether there is a connection, and the broker takes messages on it.
    pub fn dependency(&self, kind: Kind) -> Dependency {
        let shared = Arc::clone(&self.0);
        Dependency::new("rabbitmq", kind, move || {
            let health = match &*shared.link.borrow() {
                Link::Up(session) => session.health(),
                Link::Down { reason } => Err(reason.to_string()),
            };
            std::future::ready(health).boxed()
        })
    }
}

impl Shared {
    /// Waits for a connection other than the one numbered `dead`.
    async fn session(&self, dead: Option<u64>) -> Arc<Session> {
        let mut link = self.link.subscribe();
        loop {
            if let Link::Up(session) = &*link.borrow_and_update()
                && Some(session.number()) != dead
            {
                return Arc::clone(session);
            }
            if link.changed().await.is_err() {
                // The sender lives in the same value as this method's receiver.
                std::future::pending::<()>().await;
            }
        }
    }

    fn down_reason(&self) -> String {
        match &*self.link.borrow() {
            Link::Up(_) => "the connection was lost".to_owned(),
            Link::Down { reason } => reason.to_string(),
        }
    }
}
