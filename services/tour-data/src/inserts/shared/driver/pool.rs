//! Connections of the second driver: a handful a shard, opened when needed, closed unless their transaction came to a known
//! end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chassis::db::Statements;
use chassis::deadline::Deadline;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::error;
use crate::placement::Shard;
use crate::plan::{Isolation, TxError};

/// The pools of all shards that were asked for, by name.
#[derive(Default)]
pub(in crate::inserts) struct Pools(Mutex<HashMap<String, Arc<Pool>>>);

impl Pools {
    /// # Errors
    /// The second driver cannot read the database's URL.
    pub(in crate::inserts) fn of(&self, shard: &Shard) -> Result<Arc<Pool>, TxError> {
        let mut pools = self.0.lock().expect("nothing panics under this lock");
        if let Some(pool) = pools.get(&shard.name) {
            return Ok(Arc::clone(pool));
        }
        let pool = Arc::new(Pool::new(shard)?);
        pools.insert(shard.name.clone(), Arc::clone(&pool));
        Ok(pool)
    }
}

/// As many connections at most, waited for as long, as sqlx's pool has.
pub(in crate::inserts) struct Pool {
    config: Config,
    statements: Statements,
    bound: Duration,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
}

/// A connection with the statements that it has prepared; none, where they have no names.
pub(in crate::inserts) struct Session {
    client: Client,
    statements: Statements,
    prepared: HashMap<&'static str, Statement>,
}

/// A connection that is in use. Dropped without [`finish`](Lease::finish) it is closed, and PostgreSQL rolls back.
pub(in crate::inserts) struct Lease {
    pool: Arc<Pool>,
    session: Option<Session>,
    _place: OwnedSemaphorePermit,
}

impl Pool {
    fn new(shard: &Shard) -> Result<Self, TxError> {
        let unreadable = |error: tokio_postgres::Error| TxError::Other(sqlx::Error::Configuration(error.into()));
        let mut config: Config = shard.access.db_url.as_str().parse().map_err(unreadable)?;
        let known = shard.db.connect_options();
        if let Some(name) = known.get_application_name() {
            config.application_name(name);
        }
        if let Some(options) = known.get_options() {
            config.options(options);
        }
        config.connect_timeout(*shard.access.db_acquire_timeout);
        Ok(Self {
            config,
            statements: shard.db.statements(),
            bound: *shard.access.db_acquire_timeout,
            free: Arc::new(Semaphore::new(shard.access.db_pool_max as usize)),
            idle: Mutex::default(),
        })
    }

    /// A connection, or [`TxError::Unavailable`] when none is to be had in time or the request's deadline has passed.
    pub(in crate::inserts) async fn acquire(self: Arc<Self>) -> Result<Lease, TxError> {
        let deadline = Deadline::current();
        if deadline.as_ref().is_some_and(Deadline::is_over) {
            return Err(TxError::Unavailable(sqlx::Error::PoolTimedOut));
        }
        let bound = Instant::now() + self.bound;
        let bound = deadline.map_or(bound, |deadline| bound.min(deadline.at()));
        let timed_out = |_| TxError::Unavailable(sqlx::Error::PoolTimedOut);
        let free = tokio::time::timeout_at(bound, Arc::clone(&self.free).acquire_owned());
        let place = free.await.map_err(timed_out)?.expect("nobody closes it");
        let session = match self.rested() {
            Some(session) => session,
            None => tokio::time::timeout_at(bound, self.open()).await.map_err(timed_out)??,
        };
        Ok(Lease {
            pool: self,
            session: Some(session),
            _place: place,
        })
    }

    /// One that the server has not ended meanwhile: its task sees that at once.
    fn rested(&self) -> Option<Session> {
        let mut idle = self.idle.lock().expect("nothing panics under this lock");
        idle.retain(|session| !session.client.is_closed());
        idle.pop()
    }

    async fn open(&self) -> Result<Session, TxError> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(error)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection of the second driver ended");
            }
        });
        Ok(Session {
            client,
            statements: self.statements,
            prepared: HashMap::new(),
        })
    }
}

impl Session {
    /// Prepares the statements that this connection has not met yet, each with the types of its parameters where
    /// PostgreSQL is not to find them out.
    pub(in crate::inserts) async fn prepare(&mut self, texts: Vec<(&'static str, Vec<Type>)>) -> Result<(), TxError> {
        if self.statements == Statements::Unnamed {
            return Ok(());
        }
        for (text, types) in texts {
            if !self.prepared.contains_key(text) {
                let statement = self.client.prepare_typed(text, &types).await.map_err(error)?;
                self.prepared.insert(text, statement);
            }
        }
        Ok(())
    }

    /// Opens a transaction.
    pub(in crate::inserts) async fn begin(&self, isolation: Isolation) -> Result<(), tokio_postgres::Error> {
        self.client
            .batch_execute(&self.statements.begin(isolation.begin()))
            .await
    }

    /// Sends a statement that was prepared, or, without a name, all of it at once, for which the types have to be known; it
    /// goes when the future is first polled. Gives the rows that it affected.
    pub(in crate::inserts) async fn execute(
        &self,
        text: &'static str,
        values: &[&(dyn ToSql + Sync)],
        types: &[Type],
    ) -> Result<u64, tokio_postgres::Error> {
        match self.statements {
            Statements::Named => self.client.execute(&self.prepared[text], values).await,
            Statements::Unnamed => {
                let typed: Vec<_> = values.iter().copied().zip(types.iter().cloned()).collect();
                self.client.execute_typed(text, &typed).await
            }
        }
    }

    /// Opens a COPY that was prepared, for columns of these types.
    pub(in crate::inserts) async fn copy_in(
        &self,
        text: &'static str,
        types: &[Type],
    ) -> Result<BinaryCopyInWriter, tokio_postgres::Error> {
        let sink = self.client.copy_in(&self.prepared[text]).await?;
        Ok(BinaryCopyInWriter::new(sink, types))
    }
}

impl Lease {
    pub(in crate::inserts) fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("it is there until it is finished")
    }

    /// Sends COMMIT if `outcome` is a success and ROLLBACK otherwise: one round trip. What the server answered gives the
    /// connection back.
    ///
    /// # Errors
    /// The one in `outcome`, or that of COMMIT: [`TxError::CommitUnknown`] when its answer was lost.
    pub(in crate::inserts) async fn finish<T>(mut self, outcome: Result<T, TxError>) -> Result<T, TxError> {
        let session = self.session.take().expect("it is there until it is finished");
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        match session.client.batch_execute(end).await.map_err(error) {
            Ok(()) => {
                self.pool
                    .idle
                    .lock()
                    .expect("nothing panics under this lock")
                    .push(session);
                outcome
            }
            Err(answer) => outcome.and(Err(answer.at_commit())),
        }
    }
}
