//! What an alternative says about itself; printed by `--describe`, checked by the conformance test and the audit.

use std::fmt;
use std::time::Duration;

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
        /// Where what readers see is kept.
        kept: Kept,
        /// What may be lost, and when: a crash of a replica or of the server, unless it says otherwise. A crash reaches no
        /// further back than `config` allows a reader to be late, and no further on than a second.
        loses: &'static [&'static str],
    },
    /// Of an announcement.
    Message {
        /// How often a subscriber gets the message of an acknowledged tour.
        delivery: Delivery,
        /// What may be lost, and when: a crash of a replica or of the broker, unless it says otherwise.
        loses: &'static [&'static str],
    },
}

/// The configuration a reader sees. "This tour, or a later one" is meant wherever the values of a tour are promised: of
/// two tours that were under way at the same time either may be the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Config {
    /// With the 201 the reader sees the values and the `modified_at` of this tour.
    Exact,
    /// With the 201 the reader sees the values of this tour; `modified_at` may be older than the tour by this much.
    Coarse(Duration),
    /// With the 201 the reader sees the values of this tour; `modified_at` is when the values last changed.
    OnChange,
    /// The reader sees the values and the `modified_at` of this tour no later than this after the 201.
    Eventual(Duration),
    /// The reader sees the values of this tour no later than this after the 201; `modified_at` is when they last changed.
    EventualOnChange(Duration),
    /// Tours do not change it.
    Unwritten,
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Coarse(window) => write!(f, "coarse({}ms)", window.as_millis()),
            Self::OnChange => f.write_str("on-change"),
            Self::Eventual(window) => write!(f, "eventual({}ms)", window.as_millis()),
            Self::EventualOnChange(window) => write!(f, "eventual-on-change({}ms)", window.as_millis()),
            Self::Unwritten => f.write_str("unwritten"),
        }
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the configuration that readers see is kept. An audit that looks at the row alone can only judge the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// In the tenant's row.
    Row,
    /// A read computes it from the row and something else: whoever reads the row by other ways sees less.
    Computed,
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
    /// Perhaps lost, never repeated.
    AtMostOnce,
}

/// What an alternative needs from the inserter that runs its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Binds of a step are read only after the step before it was answered. An inserter that sends several steps
    /// at once cannot give that.
    pub answers_between_steps: bool,
    /// A statement that has waited has to see what was committed meanwhile: the snapshot of a stricter level is as old
    /// as the transaction.
    pub read_committed: bool,
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

impl Needs {
    /// Nothing.
    pub const NONE: Self = Self {
        answers_between_steps: false,
        read_committed: false,
    };

    /// What both need together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            answers_between_steps: self.answers_between_steps || other.answers_between_steps,
            read_committed: self.read_committed || other.read_committed,
        }
    }
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
