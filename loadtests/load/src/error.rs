//! Why a load cannot run at all; what fails *during* a run is counted, not raised.

/// Why a load was refused or ended without a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A URL that cannot be aimed at.
    #[error("cannot aim at `{url}`: {reason}")]
    Url {
        /// The text as it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A template, header or token source that cannot be used.
    #[error("{0}")]
    Request(String),
    /// A shape that makes no sense: no users, no duration, a threshold that never holds.
    #[error("{0}")]
    Shape(String),
    /// The engine's thread or runtime did not start.
    #[error("the load engine did not start: {0}")]
    Start(#[from] std::io::Error),
    /// A virtual user panicked; the numbers of the run would be wrong.
    #[error("a virtual user panicked, so the run has no result; the panic message is in the log above")]
    Panicked,
}
