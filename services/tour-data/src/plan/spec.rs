//! What an alternative says about itself; printed by `--describe`, checked by the conformance test and the audit.

use serde::{Serialize, Serializer};

/// Name, idea and promise of one alternative.
#[derive(Debug, Serialize)]
pub struct Spec {
    /// As written in the configuration.
    pub name: &'static str,
    /// The idea in one sentence.
    pub summary: &'static str,
    /// Whether the published system works this way.
    pub baseline: bool,
    /// What others may rely on; `None` where an alternative is invisible to readers and subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
    /// What it asks of the alternatives it is combined with.
    pub needs: Needs,
}

/// What readers of `tenant_config`, or subscribers to messages, may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Promise {
    /// Of a touch.
    Tenant {
        /// What a reader sees once the 201 is out.
        config: Config,
        /// In which order `modified_at` changes.
        modified_at: Order,
        /// What a crash of a replica or of the server may lose.
        loses: &'static [&'static str],
    },
    /// Of an announcement.
    Message {
        /// How often a subscriber gets the message of an acknowledged tour.
        delivery: Delivery,
        /// What a crash of a replica or of the broker may lose.
        loses: &'static [&'static str],
    },
}

/// The configuration a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// With the 201 the reader sees the values of this tour, or of one committed after it.
    Exact,
    /// Tours do not change it.
    Unwritten,
}

/// The order of the values that `modified_at` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Never backwards, as far as the clocks of the replicas agree.
    Monotone,
    /// Whoever commits last leaves its value, which may be older than the one it replaces.
    LastWriterWins,
    /// It does not change.
    None,
}

/// How often a message of an acknowledged tour arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Never lost, perhaps repeated.
    AtLeastOnce,
}

/// What an alternative needs from the inserter that runs its steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Binds of a step are read only after the step before it was answered. An inserter that sends several steps
    /// at once cannot give that.
    pub answers_between_steps: bool,
}

/// Isolation level of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Isolation {
    /// PostgreSQL's default and the published one.
    ReadCommitted,
    /// Waiters on the tenant row fail and retry, wherever the UPDATE stands.
    RepeatableRead,
    /// As repeatable read, with predicate locks on top.
    Serializable,
}

impl Isolation {
    /// The statement that opens the transaction.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::ReadCommitted => "BEGIN",
            Self::RepeatableRead => "BEGIN ISOLATION LEVEL REPEATABLE READ",
            Self::Serializable => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        }
    }
}

impl Serialize for Isolation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::ReadCommitted => "read-committed",
            Self::RepeatableRead => "repeatable-read",
            Self::Serializable => "serializable",
        })
    }
}
