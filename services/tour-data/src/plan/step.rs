//! Statements as data: what a touch or an announcement adds to the transaction, for the inserter to run.

use std::time::Instant;

use chassis::db::Session;
use chrono::{DateTime, Utc};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

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
    /// This many or fewer: the statement does nothing where nothing is to be done.
    AtMost(u64),
}

impl Expect {
    /// Fewest and most rows.
    pub(crate) fn bounds(self) -> (u64, u64) {
        match self {
            Self::Exactly(rows) => (rows, rows),
            Self::AtMost(rows) => (0, rows),
        }
    }
}

/// Whether a statement can be fused with others into one, whose parts PostgreSQL runs in no promised order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Yes: its text ends in a WHERE clause, and one more condition there makes it run after the inserts.
    Ordered,
    /// Yes: it may run before, between or after the inserts.
    Anywhere,
    /// No: it is there for the moment at which it runs.
    Alone,
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
    /// Whether it can be a part of a larger statement.
    pub part: Part,
}

impl Shape {
    /// Holds the rows that it affected against the expectation.
    ///
    /// # Errors
    /// [`TxError::Unexpected`]
    pub(crate) fn check(&self, found: u64) -> Result<(), TxError> {
        let (least, most) = self.expect.bounds();
        if (least..=most).contains(&found) {
            return Ok(());
        }
        Err(TxError::Unexpected {
            statement: self.summary,
            expected: most,
            found,
        })
    }
}

/// A value for a parameter of a shape.
#[derive(Debug, Clone)]
pub enum Bind {
    /// The service's clock, read when the statement is sent: after the statement before it was answered, before
    /// this one waits.
    Now,
    /// `timestamptz`
    Time(DateTime<Utc>),
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

/// Adds a value to a statement.
pub(crate) fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    value: &'q Bind,
    clock: Clock,
) -> Query<'q, Postgres, PgArguments> {
    match value {
        Bind::Now => query.bind(clock()),
        Bind::Time(time) => query.bind(time),
        Bind::Id(id) => query.bind(id),
        Bind::Text(text) => query.bind(text),
        Bind::OptionalText(text) => query.bind(text),
    }
}

/// Runs one step: a round trip.
///
/// # Errors
/// What PostgreSQL answered, or [`TxError::Unexpected`] if the shape's expectation does not hold.
pub(crate) async fn run(conn: &mut Session, shape: &Shape, step: &Step, clock: Clock) -> Result<(), TxError> {
    let query = step
        .binds
        .iter()
        .fold(sqlx::query(shape.sql), |query, value| bind(query, value, clock));
    // Touch and announcement are timed one by one, since theirs are the statements that wait for others.
    let started = Instant::now();
    let outcome = query.execute(conn).await;
    metrics::database(shape.summary, started.elapsed());
    shape.check(outcome?.rows_affected())
}
