//! What the service counts besides what the chassis does. Durations in seconds.

use std::sync::LazyLock;
use std::time::Duration;

use chassis::telemetry::meter;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram};

use crate::inserts::Written;
use crate::plan::{Committed, CreateError, TxError};

/// From a fast read to a waiter at the end of a long queue: a lock that is held for 87 round trips makes the tail of
/// interest seconds long, past the bounds that HTTP durations have by convention.
const BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0,
];

static CREATED: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    seconds(
        "tour.create.duration",
        "Create Tour from the parsed request to the known outcome",
    )
});
static TRANSACTION: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    seconds(
        "tour.transaction.duration",
        "One attempt, from waiting for a connection to COMMIT",
    )
});
static DATABASE: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    seconds(
        "db.client.operation.duration",
        "One read, or one statement of touch or announcement",
    )
});
static STATEMENTS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    count(
        "tour.statements",
        "Statements of committed transactions, BEGIN and COMMIT included",
    )
});
static RETRIES: LazyLock<Counter<u64>> = LazyLock::new(|| {
    count(
        "tour.transaction.retries",
        "Transactions that were rolled back in favour of another one",
    )
});
static CONSUMED: LazyLock<Counter<u64>> =
    LazyLock::new(|| count("tour.messages.consumed", "Messages drained from the queue"));

fn seconds(name: &'static str, description: &'static str) -> Histogram<f64> {
    meter()
        .f64_histogram(name)
        .with_unit("s")
        .with_description(description)
        .with_boundaries(BOUNDS.to_vec())
        .build()
}

fn count(name: &'static str, description: &'static str) -> Counter<u64> {
    meter().u64_counter(name).with_description(description).build()
}

/// A request ended.
pub(crate) fn created(took: Duration, outcome: &Result<Committed, CreateError>) {
    let outcome = match outcome {
        Ok(Committed { replayed: false, .. }) => "created",
        Ok(Committed { replayed: true, .. }) => "replayed",
        Err(CreateError::UnknownTenant(_)) => "unknown-tenant",
        Err(CreateError::KeyReused) => "key-reused",
        Err(CreateError::NotTouched(_)) => "not-touched",
        Err(CreateError::NotAnnounced(_)) => "not-announced",
        Err(CreateError::CommitUnknown(_)) => "commit-unknown",
        Err(CreateError::Unavailable(_)) => "unavailable",
        Err(CreateError::Contended(_)) => "contended",
        Err(CreateError::Internal(_)) => "internal",
    };
    CREATED.record(took.as_secs_f64(), &[KeyValue::new("outcome", outcome)]);
}

/// A transaction ended.
pub(crate) fn transaction(took: Duration, outcome: &Result<Written, TxError>) {
    let name = match outcome {
        Ok(written) => {
            STATEMENTS.add(written.statements, &[]);
            "committed"
        }
        Err(TxError::Retry(_)) => "retry",
        Err(TxError::Moved) => "moved",
        Err(TxError::Conflict(_)) => "conflict",
        Err(TxError::CommitUnknown(_)) => "commit-unknown",
        Err(TxError::Unavailable(_)) => "unavailable",
        Err(TxError::Unexpected { .. } | TxError::Other(_)) => "failed",
    };
    TRANSACTION.record(took.as_secs_f64(), &[KeyValue::new("outcome", name)]);
}

/// A transaction is about to be run again.
pub(crate) fn retried(state: &str) {
    RETRIES.add(1, &[KeyValue::new("db.response.status_code", state.to_owned())]);
}

/// A statement, or a group of them, was answered.
pub(crate) fn database(summary: &'static str, took: Duration) {
    let attributes = [
        KeyValue::new("db.system.name", "postgresql"),
        KeyValue::new("db.query.summary", summary),
    ];
    DATABASE.record(took.as_secs_f64(), &attributes);
}

/// A message was drained.
pub(crate) fn consumed(redelivered: bool) {
    CONSUMED.add(1, &[KeyValue::new("redelivered", redelivered)]);
}
