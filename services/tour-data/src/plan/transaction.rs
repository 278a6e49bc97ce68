//! A transaction that is finished or takes its connection with it.
//!
//! `sqlx::Pool::begin` is not used: dropped while it waits, it can leave the session `idle in transaction` in the
//! pool, and the next borrower's autocommit statement then reports success without being committed and holds its
//! lock. Here BEGIN is a statement like any other, and a guard that is dropped before COMMIT or ROLLBACK was
//! answered takes the connection out of the pool and closes it, so that PostgreSQL rolls back and frees the locks.

use chassis::db::{self, Session, Sessions, Statements};
use sqlx::Executor as _;

use super::{Isolation, TxError};

/// An open transaction.
pub struct Transaction {
    sessions: Sessions,
    session: Option<Session>,
}

impl Transaction {
    /// Takes a connection and sends BEGIN: one round trip. A session that the server has ended while it rested is replaced:
    /// nothing has begun yet.
    ///
    /// # Errors
    /// [`TxError::Unavailable`] when no connection is to be had.
    pub async fn begin(sessions: &Sessions, isolation: Isolation) -> Result<Self, TxError> {
        let mut spare = sessions.spare();
        loop {
            let mut transaction = Self {
                sessions: sessions.clone(),
                session: Some(sessions.acquire().await?),
            };
            match transaction.connection().begin(isolation.begin()).await {
                Ok(()) => return Ok(transaction),
                Err(error) if db::is_ended(&error) && spare > 0 => {
                    spare -= 1;
                    transaction.give_up();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The session that is in the transaction.
    pub fn connection(&mut self) -> &mut Session {
        self.session
            .as_mut()
            .expect("a transaction owns its session until it is finished")
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
        if let Some(ended) = self.session.take() {
            self.sessions.discard(ended);
        }
    }

    /// Returns the connection to the pool.
    fn give_back(&mut self) {
        self.session.take();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            session.close();
        }
    }
}

/// What may be done when a session ends under work that no transaction was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Begin it again on another session: doing it twice is doing it once.
    BeginAgain,
    /// That only if the server says that it has ended the session, which it does before it begins. A session that is simply
    /// gone may have taken the work with it: COMMIT is a part of its one round trip.
    MayBeDone,
}

/// Runs one statement, or some that need no common snapshot, outside of any transaction. A session that the server has ended
/// while it rested is replaced. Where statements have no names, it is a transaction after all: only that keeps the session
/// from others while a statement is under way.
///
/// # Errors
/// [`TxError::CommitUnknown`] when the answer to work that [may be done](Ended::MayBeDone) was lost.
pub(crate) async fn alone<T>(
    sessions: &Sessions,
    ended: Ended,
    // Not `AsyncFn`: the compiler cannot prove its future to be Send.
    work: impl AsyncFnOnce(&mut Session) -> Result<T, sqlx::Error> + Clone,
) -> Result<T, TxError> {
    if sessions.statements() == Statements::Unnamed {
        let mut transaction = Transaction::begin(sessions, Isolation::ReadCommitted).await?;
        let outcome = work(transaction.connection()).await;
        return transaction.finish(outcome.map_err(TxError::from)).await;
    }
    let mut spare = sessions.spare();
    loop {
        let mut session = sessions.acquire().await?;
        let error = match work.clone()(&mut session).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if db::is_ended(&error) {
            sessions.discard(session);
            let undone = ended == Ended::BeginAgain || error.as_database_error().is_some();
            if undone && spare > 0 {
                spare -= 1;
                continue;
            }
        }
        let error = TxError::from(error);
        return Err(match ended {
            Ended::BeginAgain => error,
            Ended::MayBeDone => error.at_commit(),
        });
    }
}
