//! One INSERT a row as published, and none of them waits for the one before: statements are sent one after the other and
//! their answers read later.
//!
//! BEGIN, the steps and all rows go out together; when every answer is there, COMMIT follows. Two round trips for a tour of
//! any size, with the plain statements of `per-row`. sqlx cannot do this, so a second driver, tokio-postgres, has
//! connections of its own, as many as the pool may have.
//!
//! Gives up: one pool, since those connections come on top of the pool's; TLS, which the second driver has none of here; and
//! a touch that needs the answer to one statement before it sends the next. The database still parses and plans row by row.
//! Not to be used where statements can be batched: `multi-row` sends less.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio_postgres::types::{ToSql, Type};

use super::shared::driver::rows::Source;
use super::shared::driver::{self, Pools, Session, Values, in_order};
use super::shared::tables::ALL;
use super::{Inserts, Program, Written};
use crate::placement::Home;
use crate::plan::{Clock, Incompatible, Isolation, Needs, Shape, Spec, Steps, TxError, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "pipelined",
    summary: "one INSERT a row, all sent before the first answer, by a second driver",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

static TEXTS: LazyLock<[String; 5]> = LazyLock::new(|| ALL.map(|table| table.insert_one(1)));

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(Pipelined)
}

struct Pipelined;

impl Inserts for Pipelined {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        if needs.answers_between_steps {
            return Err(Incompatible(
                "all statements are sent before the first answer, and a step needs the answer to the one before it"
                    .to_owned(),
            ));
        }
        Ok(Arc::new(Pipeline {
            pools: Pools::default(),
            types: ALL.map(|table| table.columns.iter().map(|(_, kind)| driver::type_of(kind)).collect()),
            extra: extra.to_vec(),
            clock,
        }))
    }
}

struct Pipeline {
    pools: Pools,
    /// Of the columns, by the table's number.
    types: [Vec<Type>; 5],
    extra: Vec<Shape>,
    clock: Clock,
}

#[async_trait]
impl Program for Pipeline {
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let mut lease = self.pools.of(&home.shard)?.acquire().await?;
        let written = self.send(lease.session(), home, isolation, tour, steps).await;
        lease.finish(written).await
    }
}

/// What is sent without a look at the answer to what was sent before.
struct Statement<'a> {
    text: &'static str,
    values: Vec<&'a (dyn ToSql + Sync)>,
    types: &'a [Type],
}

impl Pipeline {
    /// BEGIN, and everything up to COMMIT.
    async fn send(
        &self,
        session: &mut Session,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let texts = TEXTS.iter().map(|text| (text.as_str(), Vec::new()));
        let shapes = steps
            .0
            .iter()
            .map(|step| (self.extra[step.shape].sql, driver::types(step)));
        session.prepare(texts.chain(shapes).collect()).await?;
        let session = &*session;

        let source = Source::new(&home.tenant, tour);
        let rows = source.rows();
        let values: Vec<Values<'_>> = steps.0.iter().map(|step| driver::values(step, self.clock)).collect();
        let types: Vec<Vec<Type>> = steps.0.iter().map(driver::types).collect();
        let step = |at: usize| -> Statement<'_> {
            Statement {
                text: self.extra[steps.0[at].shape].sql,
                values: values[at].iter().map(|value| &**value as _).collect(),
                types: &types[at],
            }
        };
        let places = |when: When| (0..steps.0.len()).filter(move |at| self.extra[steps.0[*at].shape].when == when);
        let inserts = rows.iter().map(|row| Statement {
            text: &TEXTS[row.table],
            values: row.values.clone(),
            types: &self.types[row.table],
        });
        let sent: Vec<_> = places(When::BeforeInserts)
            .map(step)
            .chain(inserts)
            .chain(places(When::AfterInserts).map(step))
            .collect();

        let mut flight: Vec<BoxFuture<'_, Result<u64, tokio_postgres::Error>>> = Vec::with_capacity(sent.len() + 1);
        flight.push(Box::pin(async {
            session.begin(isolation).await?;
            Ok(0)
        }));
        for statement in &sent {
            let Statement {
                text,
                ref values,
                types,
            } = *statement;
            flight.push(Box::pin(session.execute(text, values, types)));
        }
        // The first error is the cause of those that follow it.
        let answers = in_order(flight).await.into_iter().collect::<Result<Vec<u64>, _>>();
        let answers = answers.map_err(driver::error)?;
        self.check(&answers[1..], rows.len(), steps)?;
        Ok(Written {
            rows: rows.len() as u64,
            statements: (answers.len() + 1) as u64,
        })
    }

    /// Holds the rows that the statements affected against what they have to.
    fn check(&self, answers: &[u64], rows: usize, steps: &Steps) -> Result<(), TxError> {
        let before = steps
            .0
            .iter()
            .filter(|step| self.extra[step.shape].when == When::BeforeInserts)
            .count();
        for found in &answers[before..before + rows] {
            if *found != 1 {
                return Err(TxError::Unexpected {
                    statement: "INSERT",
                    expected: 1,
                    found: *found,
                });
            }
        }
        let (first, last) = (answers[..before].iter(), answers[before + rows..].iter());
        let in_this_order = [When::BeforeInserts, When::AfterInserts].into_iter().flat_map(|when| {
            let shapes = steps.0.iter().map(|step| &self.extra[step.shape]);
            shapes.filter(move |shape| shape.when == when)
        });
        in_this_order
            .zip(first.chain(last))
            .try_for_each(|(shape, found)| shape.check(*found))
    }
}
