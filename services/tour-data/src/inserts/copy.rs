//! `COPY … FROM STDIN` in PostgreSQL's binary format, one a table.
//!
//! The bulk path of the database: no statement to parse, no values to plan, rows as they come off the wire. It pays off with
//! thousands of rows. A tour has 86 of them in four tables, and each COPY costs two round trips, one to open and one to
//! close it, so that `multi-row` is ahead here. The row of `tour` is an INSERT of its own, which a repeated idempotency key
//! fails before anything is copied.
//!
//! sqlx takes 44 ms for each COPY over TCP, since it leaves Nagle's algorithm on and COPY sends twice without an answer
//! between; so a second driver, tokio-postgres, has connections of its own, as many as the pool may have.
//!
//! Gives up: round trips, against every other batched inserter; one pool, since those connections come on top of the pool's;
//! TLS, which the second driver has none of here; and a pooler in transaction mode, since that driver gives a name to the
//! statement that opens a COPY. Not to be used for fewer than some hundred rows a table.

use std::pin::pin;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use tokio_postgres::types::Type;

use super::shared::driver::rows::Source;
use super::shared::driver::{self, Pools, Session};
use super::shared::tables::{ALL, TOUR};
use super::{Inserts, Program, Written};
use crate::placement::Home;
use crate::plan::{Clock, Incompatible, Isolation, Needs, Shape, Spec, Steps, TxError, When};
use crate::tour::NewTour;

pub(super) static SPEC: Spec = Spec {
    name: "copy",
    summary: "COPY … FROM STDIN in binary format a table, by a second driver",
    baseline: false,
    promise: None,
    needs: Needs {
        session: Some("its driver opens each COPY by a statement with a name"),
        ..Needs::NONE
    },
};

/// By the table's number; the first one is not copied.
static TEXTS: LazyLock<[String; 5]> =
    LazyLock::new(|| ALL.map(|table| format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name, table.names())));
static INSERT: LazyLock<String> = LazyLock::new(|| TOUR.insert_one(1));

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(Copy)
}

struct Copy;

impl Inserts for Copy {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    /// Statements go one by one, so every step can be carried.
    fn compile(&self, extra: &[Shape], _needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        Ok(Arc::new(Copies {
            pools: Pools::default(),
            types: ALL.map(|table| table.columns.iter().map(|(_, kind)| driver::type_of(kind)).collect()),
            extra: extra.to_vec(),
            clock,
        }))
    }
}

struct Copies {
    pools: Pools,
    /// Of the columns, by the table's number.
    types: [Vec<Type>; 5],
    extra: Vec<Shape>,
    clock: Clock,
}

#[async_trait]
impl Program for Copies {
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let mut lease = self.pools.of(&home.shard)?.acquire().await?;
        let rows = self.send(lease.session(), home, isolation, tour, steps).await;
        let rows = lease.finish(rows).await?;
        Ok(Written {
            rows,
            statements: (ALL.len() + steps.0.len() + 2) as u64,
        })
    }
}

impl Copies {
    async fn send(
        &self,
        session: &mut Session,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<u64, TxError> {
        let texts = TEXTS[1..]
            .iter()
            .chain([&*INSERT])
            .map(|text| (text.as_str(), Vec::new()));
        let shapes = steps
            .0
            .iter()
            .map(|step| (self.extra[step.shape].sql, driver::types(step)));
        session.prepare(texts.chain(shapes).collect()).await?;
        session.begin(isolation).await.map_err(driver::error)?;
        self.steps(session, steps, When::BeforeInserts).await?;
        let rows = self.rows(session, home, tour).await.map_err(driver::error)?;
        self.steps(session, steps, When::AfterInserts).await?;
        Ok(rows)
    }

    async fn rows(&self, session: &Session, home: &Home, tour: &NewTour) -> Result<u64, tokio_postgres::Error> {
        let source = Source::new(&home.tenant, tour);
        let rows = source.rows();
        let (head, rest) = rows.split_first().expect("there is the row of the tour");
        let mut written = session.execute(&INSERT, &head.values, &self.types[0]).await?;
        for table in 1..ALL.len() {
            let mut writer = pin!(session.copy_in(&TEXTS[table], &self.types[table]).await?);
            for row in rest.iter().filter(|row| row.table == table) {
                writer.as_mut().write(&row.values).await?;
            }
            written += writer.finish().await?;
        }
        Ok(written)
    }

    async fn steps(&self, session: &Session, steps: &Steps, when: When) -> Result<(), TxError> {
        for step in &steps.0 {
            let shape = &self.extra[step.shape];
            if shape.when == when {
                let values = driver::values(step, self.clock);
                let values: Vec<_> = values.iter().map(|value| &**value as _).collect();
                let found = session.execute(shape.sql, &values, &driver::types(step)).await;
                shape.check(found.map_err(driver::error)?)?;
            }
        }
        Ok(())
    }
}
