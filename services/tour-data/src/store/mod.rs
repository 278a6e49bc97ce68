//! What is read from the database: small named functions. The only other SQL is that of the axes.

mod move_tenant;
mod replay;
mod tenants;
mod tours;

use std::time::Instant;

use chassis::db::{Session, Sessions};

use crate::metrics;
use crate::plan::{Ended, TxError, alone};

pub(crate) use move_tenant::move_tenant;
pub use replay::{Stored, stored_under_key};
pub use tenants::{TenantConfig, tenant_config, tenant_directory};
pub(crate) use tenants::{repeat_full_batches, shard_directory, tenant_config_by, write_newest};
pub use tours::{TourDocument, TourPage, TourSummary, tour, tours_page};

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database could not be reached; it may come back.
    #[error("the database is not available: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The row is not there.
    #[error("there is no such row")]
    NotFound,
    /// Anything else.
    #[error(transparent)]
    Other(sqlx::Error),
}

impl From<TxError> for StoreError {
    fn from(error: TxError) -> Self {
        match error {
            // A COMMIT without an answer is that of a read, or of what may be done twice.
            TxError::Unavailable(error) | TxError::CommitUnknown(error) => Self::Unavailable(error),
            TxError::Other(sqlx::Error::RowNotFound) => Self::NotFound,
            TxError::Other(error) => Self::Other(error),
            // A read conflicts with nobody; should PostgreSQL say so all the same, the text is what is left of it.
            other => Self::Other(sqlx::Error::Protocol(other.to_string())),
        }
    }
}

/// Runs a read on a connection of its own and records its duration under `summary`.
async fn read<T>(
    sessions: &Sessions,
    summary: &'static str,
    query: impl AsyncFnOnce(&mut Session) -> Result<T, sqlx::Error> + Clone,
) -> Result<T, StoreError> {
    let timed = async move |session: &mut Session| {
        let started = Instant::now();
        let outcome = query(session).await;
        metrics::database(summary, started.elapsed());
        outcome
    };
    Ok(alone(sessions, Ended::BeginAgain, timed).await?)
}
