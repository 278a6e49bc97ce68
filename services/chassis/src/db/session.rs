//! Sessions that belong to a service, and sessions that a pooler lends it.
//!
//! A pooler in transaction mode (PgBouncer, say) gives a client a session of the server for one transaction, and another
//! one for the next. Whatever belongs to a session is then lost or, worse, met by somebody else: a named statement, a
//! LISTEN, a lock of the session, a parameter that was set. [`Statements::Unnamed`] is how to live with that:
//!
//! - No statement has a name. With sqlx each is then two round trips, since it waits for the description of a statement
//!   (Parse) before it sends the values (Bind). `statement_cache_capacity(0)` is no way out: sqlx 0.9.0 then still names
//!   every statement and closes none, which the server's memory shows.
//! - Between the two the session may be lent to another client, whose statement without a name takes the place of this one,
//!   unless a transaction keeps the session: values then meet a statement that they were not meant for. So everything that
//!   is sent has to be sent in a transaction, a lone SELECT too.
//! - What a session of the service's own is given at its start comes with each BEGIN, for the length of the transaction.
//!
//! [`Sessions`] is no [`Executor`] and does not give away its pool; a [`Session`] is one. So no query can forget how
//! statements are to be sent.

use std::borrow::Cow;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Connection as _, Describe, Either, Execute, Executor, PgConnection, PgPool, Postgres, SqlStr,
};
use tokio::time::timeout;

use super::{DbConfig, IDLE_IN_TRANSACTION, IDLE_IN_TRANSACTION_SETTING};
use crate::readiness::{Dependency, Kind};
use crate::service::{Chassis, StartError};

/// Whether statements are prepared under names, which last as long as their session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statements {
    /// Each is prepared once a session and found again by its name. The sessions are the service's own.
    #[default]
    Named,
    /// None has a name. Sessions may be lent for a transaction.
    Unnamed,
}

impl Statements {
    /// The text that opens a transaction, given the BEGIN that is meant.
    pub fn begin(self, begin: &'static str) -> Cow<'static, str> {
        match self {
            Self::Named => Cow::Borrowed(begin),
            Self::Unnamed => Cow::Owned(format!(
                "{begin}; SET LOCAL {IDLE_IN_TRANSACTION_SETTING} = {}",
                IDLE_IN_TRANSACTION.as_millis()
            )),
        }
    }
}

/// A pool with the way in which statements are sent on its sessions.
#[derive(Clone, Debug)]
pub struct Sessions {
    pool: PgPool,
    statements: Statements,
}

impl Sessions {
    /// As [`super::pool`].
    ///
    /// # Errors
    /// [`StartError::Config`]
    pub fn open(config: &DbConfig, cx: &Chassis) -> Result<Self, StartError> {
        Ok(Self {
            pool: super::pool(config, cx)?,
            statements: config.db_statements,
        })
    }

    /// How statements are sent.
    pub fn statements(&self) -> Statements {
        self.statements
    }

    /// As [`super::acquire`].
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] when none is free in time.
    pub async fn acquire(&self) -> Result<Session, sqlx::Error> {
        let lent = super::acquire(&self.pool).await?;
        Ok(Session {
            held: Held::Pooled(lent),
            statements: self.statements,
        })
    }

    /// One that is not of the pool, within the time in which the pool would have to give one.
    ///
    /// # Errors
    /// The database cannot be reached, or does not answer in time.
    pub async fn connect(&self) -> Result<Session, sqlx::Error> {
        let within = self.pool.options().get_acquire_timeout();
        let options = self.pool.connect_options();
        let silent = |_| {
            let why = format!("the database did not answer within {within:?}");
            sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
        };
        let own = timeout(within, PgConnection::connect_with(&options)).await;
        Ok(Session::own(own.map_err(silent)??, self.statements))
    }

    /// As [`super::discard`].
    pub fn discard(&self, session: Session) {
        match session.held {
            Held::Pooled(ended) => super::discard(&self.pool, ended),
            Held::Own(ended) => drop(ended),
        }
    }

    /// As [`super::spare_sessions`].
    pub fn spare(&self) -> u32 {
        super::spare_sessions(&self.pool)
    }

    /// How its sessions are connected.
    pub fn connect_options(&self) -> Arc<PgConnectOptions> {
        self.pool.connect_options()
    }

    /// As [`super::dependency`].
    pub fn dependency(&self, kind: Kind) -> Dependency {
        super::dependency(&self.pool, kind)
    }
}

/// A session of the database; statements on it have names or not, as its [`Statements`] say.
#[derive(Debug)]
pub struct Session {
    held: Held,
    statements: Statements,
}

#[derive(Debug)]
enum Held {
    Pooled(PoolConnection<Postgres>),
    Own(PgConnection),
}

impl Session {
    /// A connection that is not of a pool.
    pub fn own(connection: PgConnection, statements: Statements) -> Self {
        Self {
            held: Held::Own(connection),
            statements,
        }
    }

    /// Opens a transaction with this BEGIN: one round trip.
    ///
    /// # Errors
    /// What PostgreSQL answered, or that it did not.
    pub async fn begin(&mut self, begin: &'static str) -> Result<(), sqlx::Error> {
        let text = AssertSqlSafe(self.statements.begin(begin));
        self.connection().execute(text).await.map(drop)
    }

    /// Closes the connection, so that the server rolls back what was open; the pool is one short until it opens another.
    pub fn close(self) {
        match self.held {
            Held::Pooled(connection) => drop(connection.detach()),
            Held::Own(connection) => drop(connection),
        }
    }

    fn connection(&mut self) -> &mut PgConnection {
        match &mut self.held {
            Held::Pooled(connection) => connection,
            Held::Own(connection) => connection,
        }
    }
}

/// A statement that is sent as the session's [`Statements`] say.
struct Sent<E> {
    statement: E,
    statements: Statements,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Sent<E> {
    fn sql(self) -> SqlStr {
        self.statement.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.statement.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.statement.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.statements == Statements::Named && self.statement.persistent()
    }
}

impl Session {
    fn sent<E>(&self, statement: E) -> Sent<E> {
        Sent {
            statement,
            statements: self.statements,
        }
    }
}

impl<'c> Executor<'c> for &'c mut Session {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let sent = self.sent(query);
        self.connection().fetch_many(sent)
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let sent = self.sent(query);
        self.connection().fetch_optional(sent)
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        match self.statements {
            Statements::Named => self.connection().prepare_with(sql, parameters),
            Statements::Unnamed => refused(),
        }
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        match self.statements {
            Statements::Named => self.connection().describe(sql),
            Statements::Unnamed => refused(),
        }
    }
}

/// What is prepared to be used later needs a name.
fn refused<'e, T: Send + 'e>() -> BoxFuture<'e, Result<T, sqlx::Error>> {
    let why = "a statement cannot be prepared on a session whose statements have no names";
    ready(Err(sqlx::Error::Protocol(why.to_owned()))).boxed()
}
