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
        /// What may be lost, and when. A fault reaches no further back than `config` allows a reader to be late, and as far
        /// on, a second at least.
        loses: &'static [Loss],
    },
    /// Of an announcement.
    Message {
        /// How often a subscriber gets the message of an acknowledged tour.
        delivery: Delivery,
        /// What may be lost, and when.
        loses: &'static [Loss],
    },
}

/// Something that may be lost. The audit excuses what is declared and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// For people.
    pub text: &'static str,
    /// What is lost of a tour.
    pub of: Lost,
    /// Any of these may be the reason.
    pub causes: &'static [Cause],
}

/// What is lost of a tour: of its touch, or its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// All of it, though the tour was acknowledged: the values with their `modified_at`, or the message.
    Acknowledged,
    /// `modified_at` of an acknowledged tour, whose values are there.
    ModifiedAt,
    /// All of it, of a tour that was not acknowledged. For one that was it excuses nothing.
    Unacknowledged,
}

/// Why something is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A replica of the service crashes. One that is stopped in good order finishes what it has begun.
    Replica,
    /// PostgreSQL ends, or cannot be reached: what was open is rolled back, and whether a COMMIT was carried out may not be
    /// known. It keeps what it has committed; settings that give that up declare it themselves.
    Database,
    /// Redis ends, or cannot be reached.
    Redis,
    /// The broker ends, or cannot be reached.
    Broker,
    /// It takes no fault: it may happen at any time.
    NoFault,
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
    /// Why it takes sessions of the service's own: what it leaves in a session must be there for the next transaction. A
    /// pooler in transaction mode gives that to somebody else.
    pub session: Option<&'static str>,
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
        session: None,
    };

    /// What both need together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            answers_between_steps: self.answers_between_steps || other.answers_between_steps,
            read_committed: self.read_committed || other.read_committed,
            session: self.session.or(other.session),
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
