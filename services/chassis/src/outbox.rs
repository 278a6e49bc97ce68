//! Messages that are written in the transaction they are about, and published from there: at least once, and in order.
//!
//! A service that uses it has two tables in its migrations:
//!
//! ```sql
//! CREATE TABLE outbox_lane (lane smallint PRIMARY KEY); -- filled with 0 to 7
//! CREATE TABLE outbox (
//!     id         bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
//!     lane       smallint NOT NULL,
//!     message_id text     NOT NULL,
//!     body       text     NOT NULL
//! );
//! CREATE INDEX outbox_lane_id ON outbox (lane, id);
//! ```
//!
//! Messages of one stream (a tenant, say) share a lane. A relay locks a lane that has messages, skipping those that another
//! one has locked, and publishes one message after the other: so the relays of all replicas share the work, and the order
//! within a stream is that of its transactions, as far as one began after another had committed. Messages are taken away
//! when the broker has confirmed them. (A cursor on the last id would lose those that commit out of order.) One that was
//! published by a relay that crashed then is published again.
//!
//! Nothing is announced with NOTIFY, which takes a lock of the whole server at COMMIT: a relay is woken by its own process
//! and looks for the messages of others now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Executor;
use tokio::sync::Notify;

use crate::broker::{Broker, Message, PublishError};
use crate::db::{Session, Sessions};
use crate::service::Background;

/// Adds a message to a transaction. Binds: the number of its stream (`bigint`), its id and its body (`text`).
pub const INSERT: &str = "INSERT INTO outbox (lane, message_id, body) VALUES ($1 % 8, $2, $3)";

/// How often a relay looks without being woken.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Most messages of one transaction.
const BATCH: i64 = 100;
/// A transaction that has published for so long takes no further message: it keeps vacuum from its work.
const LONGEST: Duration = Duration::from_secs(2);

/// What a relay publishes, and where it finds it.
#[derive(Clone)]
pub struct Relay {
    /// Takes the messages.
    pub broker: Broker,
    /// Exchange they go to.
    pub exchange: &'static str,
    /// Key they are routed by.
    pub routing_key: &'static str,
    /// Databases with an outbox each.
    pub outboxes: Vec<Sessions>,
    /// Told when a transaction with a message has committed.
    pub wake: Arc<Notify>,
}

/// One outbox as a relay sees it.
struct Outlet {
    database: Sessions,
    /// Of its own: a relay that is dropped in the middle of a batch takes its transaction along and leaves it to nobody.
    session: Option<Session>,
    /// The lane that was published last.
    last: i16,
}

impl Outlet {
    fn of(outbox: &Sessions) -> Self {
        Self {
            database: outbox.clone(),
            session: None,
            last: -1,
        }
    }

    async fn session(&mut self) -> Result<&mut Session, sqlx::Error> {
        match &mut self.session {
            Some(session) => Ok(session),
            closed => Ok(closed.insert(self.database.connect().await?)),
        }
    }
}

/// Why a batch was not published to its end.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("the outbox cannot be read: {0}")]
    Database(#[from] sqlx::Error),
    #[error("message {id}: {error}")]
    Publish { id: String, error: PublishError },
}

impl Relay {
    /// The task that publishes until the service drains, and then what is left.
    pub fn start(self) -> Background {
        let broker = self.broker.clone();
        // Like a consumer, or the connection would be closed under the last messages.
        Background::new("outbox relay", broker.while_draining(self.run()))
    }

    async fn run(self) -> anyhow::Result<()> {
        let mut outlets: Vec<Outlet> = self.outboxes.iter().map(Outlet::of).collect();
        loop {
            let last = tokio::select! {
                () = self.wake.notified() => false,
                () = tokio::time::sleep(LOOK_EVERY) => false,
                () = self.broker.drained() => true,
            };
            for outlet in &mut outlets {
                if let Err(error) = self.empty(outlet).await {
                    outlet.session = None;
                    tracing::warn!(%error, "messages stay in the outbox");
                }
            }
            if last {
                return Ok(());
            }
        }
    }

    /// Publishes lane after lane until none is left that has messages and is free.
    async fn empty(&self, outlet: &mut Outlet) -> Result<(), RelayError> {
        loop {
            let last = outlet.last;
            let session = outlet.session().await?;
            match self.batch(session, last).await? {
                Some(lane) => outlet.last = lane,
                None => return Ok(()),
            }
        }
    }

    /// One batch of the first lane after `last`, in a round.
    async fn batch(&self, session: &mut Session, last: i16) -> Result<Option<i16>, RelayError> {
        const LANE: &str = "SELECT lane FROM outbox_lane l WHERE EXISTS (SELECT FROM outbox o WHERE o.lane = l.lane) \
            ORDER BY lane <= $1, lane LIMIT 1 FOR UPDATE SKIP LOCKED";
        const MESSAGES: &str = "SELECT id, message_id, body FROM outbox WHERE lane = $1 ORDER BY id LIMIT $2";
        session.begin("BEGIN").await?;
        let lane: Option<i16> = sqlx::query_scalar(LANE)
            .bind(last)
            .fetch_optional(&mut *session)
            .await?;
        let Some(lane) = lane else {
            session.execute("ROLLBACK").await?;
            return Ok(None);
        };
        let messages: Vec<(i64, String, String)> = sqlx::query_as(MESSAGES)
            .bind(lane)
            .bind(BATCH)
            .fetch_all(&mut *session)
            .await?;
        let mut published = Vec::with_capacity(messages.len());
        let outcome = self.publish(messages, &mut published).await;
        sqlx::query("DELETE FROM outbox WHERE id = ANY($1)")
            .bind(&published)
            .execute(&mut *session)
            .await?;
        session.execute("COMMIT").await?;
        outcome.map(|()| Some(lane))
    }

    /// One after the other, up to the first that the broker does not take.
    async fn publish(&self, messages: Vec<(i64, String, String)>, published: &mut Vec<i64>) -> Result<(), RelayError> {
        let started = Instant::now();
        for (id, message_id, body) in messages {
            let message = Message {
                exchange: self.exchange,
                routing_key: self.routing_key,
                message_id: message_id.clone(),
                body: body.into_bytes(),
            };
            let sent = self.broker.publish(message).await;
            sent.map_err(|error| RelayError::Publish { id: message_id, error })?;
            published.push(id);
            if started.elapsed() > LONGEST {
                break;
            }
        }
        Ok(())
    }
}
