//! Statements as data: what a touch or an announcement adds to the transaction, for the inserter to run.

use std::time::Instant;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::TxError;
use crate::metrics;

/// Where in the transaction a statement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Between BEGIN and the first row.
    BeforeInserts,
    /// Between the last row and COMMIT.
    AfterInserts,
}

/// How many rows a statement has to affect (or, a SELECT, to return).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// This many; anything else fails the transaction.
    Exactly(u64),
}

/// A statement whose text never varies, so that every connection prepares it once.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Low-cardinality name for metrics and errors: "UPDATE tenant_config".
    pub summary: &'static str,
    /// With `$1` … `$n` for the binds.
    pub sql: &'static str,
    /// Its place.
    pub when: When,
    /// What proves that it did its work.
    pub expect: Expect,
}

/// A value for a parameter of a shape.
#[derive(Debug, Clone)]
pub enum Bind {
    /// The service's clock, read when the statement is sent: after the statement before it was answered, before
    /// this one waits.
    Now,
    /// `bigint`
    Id(i64),
    /// `text`
    Text(String),
    /// `text` or NULL
    OptionalText(Option<String>),
}

/// One execution of a shape.
#[derive(Debug, Clone)]
pub struct Step {
    /// Index into the shapes of whoever made the step.
    pub shape: usize,
    /// In the order of the parameters.
    pub binds: Vec<Bind>,
}

/// The steps of one request, run in this order within their place.
#[derive(Debug, Clone, Default)]
pub struct Steps(pub Vec<Step>);

impl Steps {
    /// Adds steps whose shapes stand `offset` places further on in the compiled list.
    pub(crate) fn append(&mut self, more: Self, offset: usize) {
        self.0.extend(more.0.into_iter().map(|step| Step {
            shape: step.shape + offset,
            ..step
        }));
    }
}

/// Reads the wall clock.
pub type Clock = fn() -> DateTime<Utc>;

/// Runs one step: a round trip.
///
/// # Errors
/// What PostgreSQL answered, or [`TxError::Unexpected`] if the shape's expectation does not hold.
pub(crate) async fn run(conn: &mut PgConnection, shape: &Shape, step: &Step, clock: Clock) -> Result<(), TxError> {
    let query = step
        .binds
        .iter()
        .fold(sqlx::query(shape.sql), |query, bind| match bind {
            Bind::Now => query.bind(clock()),
            Bind::Id(id) => query.bind(id),
            Bind::Text(text) => query.bind(text),
            Bind::OptionalText(text) => query.bind(text),
        });
    // Touch and announcement are timed one by one, since theirs are the statements that wait for others.
    let started = Instant::now();
    let outcome = query.execute(conn).await;
    metrics::database(shape.summary, started.elapsed());
    let found = outcome?.rows_affected();
    let Expect::Exactly(expected) = shape.expect;
    if found == expected {
        Ok(())
    } else {
        Err(TxError::Unexpected {
            statement: shape.summary,
            expected,
            found,
        })
    }
}
