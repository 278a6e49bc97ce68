//! What can go wrong on our side, whichever endpoint is asked.

use std::time::Duration;

use axum::http::StatusCode;
use chassis::problem::Problem;

/// When a client may try again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A request that was good and could not be carried out. The text is for the client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the signing key is not loaded yet; try again shortly")]
    NotReady,
    #[error("too many passwords are being checked; try again shortly")]
    Busy,
    #[error("the database cannot be asked right now; try again shortly")]
    Database(#[from] sqlx::Error),
    #[error("the service failed; its log has the cause")]
    Internal(String),
}

impl Failure {
    /// Tells the log what the client is not told. The one place where that is done.
    pub(crate) fn log(&self) {
        match self {
            Self::Database(cause) => tracing::error!(%cause, "a request failed: the database"),
            Self::Internal(cause) => tracing::error!(cause, "a request failed"),
            Self::Busy => tracing::warn!("a request was refused: too many passwords at once"),
            Self::NotReady => {}
        }
    }

    pub(crate) fn passes(&self) -> bool {
        !matches!(self, Self::Internal(_))
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        failure.log();
        let (slug, title) = match &failure {
            Failure::NotReady => ("signing-key-not-loaded", "The signing key is not loaded yet"),
            Failure::Busy => ("busy", "Too many requests at once"),
            Failure::Database(_) => ("database-unavailable", "The database is not available"),
            Failure::Internal(_) => ("internal", "Internal error"),
        };
        if failure.passes() {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, slug, title)
                .detail(failure.to_string())
                .retry_after(RETRY_AFTER)
        } else {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, slug, title).detail(failure.to_string())
        }
    }
}
