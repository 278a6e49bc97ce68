//! Everything in one statement: the rows and the steps as parts of one `WITH`.
//!
//! PostgreSQL runs the parts of a statement in no promised order; left alone it locks the tenant row before it inserts.
//! What has to come after the rows therefore refers to them: `AND (SELECT rows FROM written) >= 0` cannot be decided before
//! they are written. The expectations are checked inside, by a function that raises, since the answer comes when everything
//! is committed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use chassis::db::{Session, Statements};
use sqlx::{AssertSqlSafe, Row as _};

use super::columns::{Columns, bind_tour};
use crate::inserts::{Program, Written};
use crate::metrics;
use crate::placement::Home;
use crate::plan::{
    Clock, Ended, Incompatible, Isolation, Needs, Part, Shape, Steps, Transaction, TxError, When, alone, bind,
};
use crate::tour::{NewTour, TenantId};

/// What the rows' part ends with: `written`, one row whose column `rows` counts them.
pub(in crate::inserts) struct Fused {
    rows: String,
    /// How many parameters that part has: the row of `tour`, then the columns.
    parameters: usize,
    extra: Vec<Shape>,
    clock: Clock,
    /// Composed when first needed, by the shapes that are in them.
    texts: Mutex<HashMap<Vec<usize>, Arc<str>>>,
}

impl Fused {
    /// `rows` is the statement's beginning, `WITH … written AS (…)`.
    pub(in crate::inserts) fn compile(
        rows: String,
        parameters: usize,
        extra: &[Shape],
        needs: Needs,
        clock: Clock,
    ) -> Result<Self, Incompatible> {
        if let Some(alone) = extra.iter().find(|shape| shape.part == Part::Alone) {
            return Err(Incompatible(format!(
                "everything goes in one statement, whose parts run in no promised order, and {:?} is there for the moment \
                 at which it runs",
                alone.summary
            )));
        }
        if needs.answers_between_steps {
            return Err(Incompatible(
                "everything goes in one statement, and a step needs the answer to the one before it".to_owned(),
            ));
        }
        Ok(Self {
            rows,
            parameters,
            extra: extra.to_vec(),
            clock,
            texts: Mutex::default(),
        })
    }

    fn text(&self, steps: &Steps) -> Arc<str> {
        let shapes: Vec<usize> = steps.0.iter().map(|step| step.shape).collect();
        let mut texts = self.texts.lock().expect("nothing panics under this lock");
        let compose = |shapes: &Vec<usize>| self.compose(shapes).into();
        Arc::clone(texts.entry(shapes).or_insert_with_key(compose))
    }

    fn compose(&self, shapes: &[usize]) -> String {
        let mut text = self.rows.clone();
        let mut checks = Vec::new();
        let mut first = self.parameters;
        for (at, shape) in shapes.iter().map(|shape| &self.extra[*shape]).enumerate() {
            let (sql, parameters) = renumbered(shape.sql, first);
            first += parameters;
            write!(text, ", step_{at} AS ({sql}").expect("a string takes it");
            if shape.part == Part::Ordered && shape.when == When::AfterInserts {
                text.push_str(" AND (SELECT rows FROM written) >= 0");
            }
            if !sql.starts_with("SELECT") {
                text.push_str(" RETURNING 1");
            }
            text.push(')');
            let (least, most) = shape.expect.bounds();
            checks.push(format!(
                "expect_rows('{}', (SELECT count(*) FROM step_{at}), {least}, {most})",
                shape.summary
            ));
        }
        text.push_str(" SELECT rows FROM written");
        if !checks.is_empty() {
            write!(text, " WHERE {}", checks.join(" AND ")).expect("a string takes it");
        }
        text
    }

    async fn run(
        &self,
        conn: &mut Session,
        text: Arc<str>,
        tenant: TenantId,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<u64, sqlx::Error> {
        let columns = Columns::of(tour);
        // Composed of this crate's own texts.
        let query = sqlx::query(AssertSqlSafe(text));
        let query = columns.bind(bind_tour(query, tenant, tour));
        let values = steps.0.iter().flat_map(|step| &step.binds);
        let query = values.fold(query, |query, value| bind(query, value, self.clock));
        let started = Instant::now();
        let answer = query.fetch_one(conn).await;
        metrics::database("CREATE TOUR", started.elapsed());
        Ok(answer?.try_get::<i64, _>(0)?.unsigned_abs())
    }
}

#[async_trait]
impl Program for Fused {
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let (db, text) = (&home.shard.db, self.text(steps));
        if isolation == Isolation::ReadCommitted {
            let run = async |conn: &mut Session| self.run(conn, Arc::clone(&text), home.tenant, tour, steps).await;
            let rows = alone(db, Ended::MayBeDone, run).await?;
            // Without a name it takes a BEGIN and a COMMIT to keep the session.
            let statements = if db.statements() == Statements::Named { 1 } else { 3 };
            return Ok(Written { rows, statements });
        }
        let mut transaction = Transaction::begin(db, isolation).await?;
        let rows = self.run(transaction.connection(), text, home.tenant, tour, steps).await;
        let rows = transaction.finish(rows.map_err(TxError::from)).await?;
        Ok(Written { rows, statements: 3 })
    }
}

/// The statement with its parameters numbered from `first + 1` on, and how many it has.
fn renumbered(sql: &str, first: usize) -> (String, usize) {
    let mut pieces = sql.split('$');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    let mut most = 0;
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = piece[..digits].parse().expect("`$` stands before a number only");
        most = most.max(number);
        write!(text, "${}{}", number + first, &piece[digits..]).expect("a string takes it");
    }
    (text, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_on_however_often_they_occur() {
        let (text, parameters) = renumbered(
            "UPDATE t SET a = $2, b = $1 WHERE c < $1 - interval '1 s' AND d = $12",
            48,
        );
        assert_eq!(
            text,
            "UPDATE t SET a = $50, b = $49 WHERE c < $49 - interval '1 s' AND d = $60"
        );
        assert_eq!(parameters, 12);
        assert_eq!(renumbered("SELECT 1", 48), ("SELECT 1".to_owned(), 0));
    }
}
