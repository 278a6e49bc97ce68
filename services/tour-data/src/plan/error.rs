//! How a transaction fails, told apart by what may be done about it.

/// Serialization failure, deadlock and a lock that is not waited for: the transaction was rolled back and may succeed now.
const RETRYABLE: [&str; 3] = ["40001", "40P01", "55P03"];

/// The tenant has moved to another shard: raised by the function that a sharded placement calls in each transaction.
pub(crate) const MOVED: &str = "RL002";

const UNIQUE_VIOLATION: &str = "23505";

/// Why a transaction did not end with a known COMMIT.
#[derive(Debug, thiserror::Error)]
pub enum TxError {
    /// Rolled back by PostgreSQL in favour of another transaction; holds the SQLSTATE.
    #[error("rolled back in favour of another transaction (SQLSTATE {0})")]
    Retry(String),
    /// The tenant lives in another shard now.
    #[error("the tenant has moved to another shard")]
    Moved,
    /// A unique constraint, named, holds the row already.
    #[error("the unique constraint {0} holds such a row already")]
    Conflict(String),
    /// COMMIT was sent and its answer lost: the tour may exist or not.
    #[error("the connection broke during COMMIT, the transaction may have been committed: {0}")]
    CommitUnknown(#[source] sqlx::Error),
    /// The database could not be reached or broke off before COMMIT: nothing was written.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// A statement affected another number of rows than it may.
    #[error("{statement} affected {found} rows, expected {expected}")]
    Unexpected {
        /// Its summary.
        statement: &'static str,
        /// Most rows it may affect.
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
    pub(crate) fn at_commit(self) -> Self {
        match self {
            Self::Unavailable(error) => Self::CommitUnknown(error),
            known => known,
        }
    }
}

impl TxError {
    /// What PostgreSQL answered, by its SQLSTATE.
    pub(crate) fn of_state(code: &str, constraint: Option<&str>, error: sqlx::Error) -> Self {
        if RETRYABLE.contains(&code) {
            return Self::Retry(code.to_owned());
        }
        match code {
            MOVED => Self::Moved,
            UNIQUE_VIOLATION => Self::Conflict(constraint.unwrap_or_default().to_owned()),
            // 08: connection; 53: out of connections, memory or disk; 57P: the server is going down or coming up.
            _ if ["08", "53", "57P"].iter().any(|class| code.starts_with(class)) => Self::Unavailable(error),
            _ => Self::Other(error),
        }
    }
}

impl From<sqlx::Error> for TxError {
    fn from(error: sqlx::Error) -> Self {
        if let Some(database) = error.as_database_error() {
            let code = database.code().unwrap_or_default().into_owned();
            let constraint = database.constraint().map(str::to_owned);
            return Self::of_state(&code, constraint.as_deref(), error);
        }
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(error),
            other => Self::Other(other),
        }
    }
}
