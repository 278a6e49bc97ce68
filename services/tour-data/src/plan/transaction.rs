//! A transaction that is finished or takes its connection with it.
//!
//! `sqlx::Pool::begin` is not used: dropped while it waits, it can leave the session `idle in transaction` in the
//! pool, and the next borrower's autocommit statement then reports success without being committed and holds its
//! lock. Here BEGIN is a statement like any other, and a guard that is dropped before COMMIT or ROLLBACK was
//! answered takes the connection out of the pool and closes it, so that PostgreSQL rolls back and frees the locks.

use chassis::db;
use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, PgConnection, PgPool, Postgres};

use super::{Isolation, TxError};

/// An open transaction.
pub struct Transaction {
    pool: PgPool,
    connection: Option<PoolConnection<Postgres>>,
}

impl Transaction {
    /// Takes a connection and sends BEGIN: one round trip. A session that the server has ended while it rested is replaced:
    /// nothing has begun yet.
    ///
    /// # Errors
    /// [`TxError::Unavailable`] when no connection is to be had.
    pub async fn begin(pool: &PgPool, isolation: Isolation) -> Result<Self, TxError> {
        let mut spare = db::spare_sessions(pool);
        loop {
            let mut transaction = Self {
                pool: pool.clone(),
                connection: Some(db::acquire(pool).await?),
            };
            match transaction.connection().execute(isolation.begin()).await {
                Ok(_) => return Ok(transaction),
                Err(error) if db::is_ended(&error) && spare > 0 => {
                    spare -= 1;
                    transaction.give_up();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The session that is in the transaction.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.connection
            .as_mut()
            .expect("a transaction owns its connection until it is finished")
    }

    /// Sends COMMIT if `outcome` is a success and ROLLBACK otherwise: one round trip.
    ///
    /// # Errors
    /// The one in `outcome`, or that of COMMIT: [`TxError::CommitUnknown`] when its answer was lost.
    pub async fn finish<T>(mut self, outcome: Result<T, TxError>) -> Result<T, TxError> {
        let end = if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let answer = self.connection().execute(end).await;
        match (outcome, answer) {
            (Ok(value), Ok(_)) => {
                self.give_back();
                Ok(value)
            }
            (Ok(_), Err(error)) => {
                let error = TxError::from(error).at_commit();
                // PostgreSQL answered that it rolled back: the session is idle again.
                match error {
                    TxError::Retry(_) | TxError::Conflict(_) => self.give_back(),
                    TxError::CommitUnknown(_) => self.give_up(),
                    _ => {}
                }
                Err(error)
            }
            (Err(error), answer) => {
                match answer {
                    Ok(_) => self.give_back(),
                    Err(_) => self.give_up(),
                }
                Err(error)
            }
        }
    }

    /// Closes a connection that the server has ended, and lets the pool know.
    fn give_up(&mut self) {
        if let Some(ended) = self.connection.take() {
            db::discard(&self.pool, ended);
        }
    }

    /// Returns the connection to the pool.
    fn give_back(&mut self) {
        self.connection.take();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

/// Runs a statement that is the whole transaction: COMMIT is a part of its one round trip. A session that the server has
/// ended while it rested is replaced, if the server says so; one that is simply gone may have taken the statement with it.
///
/// # Errors
/// [`TxError::CommitUnknown`] when the answer was lost.
pub(crate) async fn in_one_statement<T>(
    pool: &PgPool,
    // Not `AsyncFn`: the compiler cannot prove its future to be Send.
    statement: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error> + Clone,
) -> Result<T, TxError> {
    let mut spare = db::spare_sessions(pool);
    loop {
        let mut connection = db::acquire(pool).await?;
        let error = match statement.clone()(&mut connection).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if db::is_ended(&error) {
            db::discard(pool, connection);
            if error.as_database_error().is_some() && spare > 0 {
                spare -= 1;
                continue;
            }
        }
        return Err(TxError::from(error).at_commit());
    }
}
