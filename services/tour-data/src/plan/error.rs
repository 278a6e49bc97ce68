//! How a transaction fails, told apart by what may be done about it.

use sqlx::error::ErrorKind;

/// Serialization failure and deadlock: PostgreSQL rolled back and the same transaction may succeed now.
const RETRYABLE: [&str; 2] = ["40001", "40P01"];

/// Why a transaction did not end with a known COMMIT.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// Rolled back by PostgreSQL in favour of another transaction; holds the SQLSTATE.
    #[error("rolled back in favour of another transaction (SQLSTATE {0})")]
    Retry(String),
    /// A unique constraint, named, holds the row already.
    #[error("the unique constraint {0} holds such a row already")]
    Conflict(String),
    /// COMMIT was sent and its answer lost: the tour may exist or not.
    #[error("the connection broke during COMMIT, the transaction may have been committed: {0}")]
    CommitUnknown(#[source] sqlx::Error),
    /// The database could not be reached or broke off before COMMIT: nothing was written.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// A statement affected another number of rows than it must.
    #[error("{statement} affected {found} rows, expected {expected}")]
    Unexpected {
        /// Its summary.
        statement: &'static str,
        /// Rows it must affect.
        expected: u64,
        /// Rows it affected.
        found: u64,
    },
    /// Anything else, rolled back.
    #[error(transparent)]
    Other(sqlx::Error),
}

impl TxError {
    /// An error of COMMIT itself: unless PostgreSQL says that it rolled back, the outcome is not known.
    pub(crate) fn at_commit(error: sqlx::Error) -> Self {
        match Self::from(error) {
            Self::Unavailable(error) => Self::CommitUnknown(error),
            known => known,
        }
    }
}

impl From<sqlx::Error> for TxError {
    fn from(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else {
            return match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => Self::Unavailable(error),
                other => Self::Other(other),
            };
        };
        let code = database.code().unwrap_or_default();
        if RETRYABLE.contains(&code.as_ref()) {
            return Self::Retry(code.into_owned());
        }
        if database.kind() == ErrorKind::UniqueViolation {
            return Self::Conflict(database.constraint().unwrap_or_default().to_owned());
        }
        // 08: connection; 53: out of connections, memory or disk; 57P: the server is going down or coming up.
        if code.starts_with("08") || code.starts_with("53") || code.starts_with("57P") {
            return Self::Unavailable(error);
        }
        Self::Other(error)
    }
}
