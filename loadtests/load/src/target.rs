//! What the engine drives: a target makes users, a user does iterations.

use std::fmt;
use std::time::Duration;

/// Something that can be put under load.
///
/// All futures run on the engine's one thread: they must not block.
pub trait Target: Send + Sync + 'static {
    /// What one virtual user keeps between iterations: a connection, a buffer.
    type User: Send;

    /// Makes the virtual user `index` (from 0). A failure is counted like that of an iteration, and tried again.
    fn user(&self, index: usize) -> impl Future<Output = Result<Self::User, Failure>> + Send;

    /// Does one iteration.
    fn iterate(&self, user: &mut Self::User) -> impl Future<Output = Iteration> + Send;

    /// The names of what is counted apart beside the whole; none where all iterations are alike.
    fn parts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Which of [`Self::parts`] this user's last iteration was.
    fn part(&self, _user: &Self::User) -> usize {
        0
    }
}

/// One iteration as its target saw it.
#[derive(Debug)]
pub struct Iteration {
    /// The latency to publish; what the target does outside of it (a token, for instance) is not in it. Without
    /// meaning for an iteration that failed.
    pub timed: Duration,
    /// Whether it did what it should.
    pub outcome: Result<(), Failure>,
}

/// Why an iteration failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What it is counted as.
    pub kind: Kind,
    /// For the person who reads the report; the first of each kind is kept.
    pub detail: String,
}

impl Failure {
    /// A failure of `kind`, with what happened in words.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }
}

/// The kinds of failure that are counted apart. Their number is bounded, so is the memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No connection could be made.
    Connect,
    /// No complete answer within the target's timeout.
    Timeout,
    /// The other side closed the connection before the answer was complete.
    Closed,
    /// The answer was not HTTP.
    Protocol,
    /// An answer with a status that was not expected.
    Status(u16),
    /// No token could be had.
    Token,
    /// The status was right and the body was not.
    Body,
    /// A failure that only the target itself can name.
    Other(&'static str),
}

impl fmt::Display for Kind {
    /// The key in reports: `connect`, `status-503`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect => f.write_str("connect"),
            Self::Timeout => f.write_str("timeout"),
            Self::Closed => f.write_str("closed"),
            Self::Protocol => f.write_str("protocol"),
            Self::Status(code) => write!(f, "status-{code}"),
            Self::Token => f.write_str("token"),
            Self::Body => f.write_str("body"),
            Self::Other(name) => f.write_str(name),
        }
    }
}
