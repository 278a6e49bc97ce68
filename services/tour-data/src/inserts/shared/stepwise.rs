//! A transaction whose statements go one by one: what comes before the rows, the rows, what comes after them.

use async_trait::async_trait;
use chassis::db::Session;

use crate::inserts::{Program, Written};
use crate::placement::Home;
use crate::plan::{Clock, Isolation, Shape, Steps, Transaction, TxError, When, run};
use crate::tour::{NewTour, TenantId};

/// How the rows get in, within an open transaction.
pub(in crate::inserts) trait Rows: Send + Sync {
    /// Inserts all of them. The statements of the answer are those that it took.
    fn insert(
        &self,
        conn: &mut Session,
        tenant: TenantId,
        tour: &NewTour,
    ) -> impl Future<Output = Result<Written, TxError>> + Send;
}

/// Every step can be carried, and every answer is there before the next statement goes.
pub(in crate::inserts) struct Stepwise<R> {
    pub(in crate::inserts) rows: R,
    pub(in crate::inserts) extra: Vec<Shape>,
    pub(in crate::inserts) clock: Clock,
}

#[async_trait]
impl<R: Rows> Program for Stepwise<R> {
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let mut transaction = Transaction::begin(&home.shard.db, isolation).await?;
        let written = self
            .statements(transaction.connection(), home.tenant, tour, steps)
            .await;
        let written = transaction.finish(written).await?;
        Ok(Written {
            statements: written.statements + steps.0.len() as u64 + 2,
            ..written
        })
    }
}

impl<R: Rows> Stepwise<R> {
    async fn statements(
        &self,
        conn: &mut Session,
        tenant: TenantId,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        self.steps(conn, steps, When::BeforeInserts).await?;
        let written = self.rows.insert(conn, tenant, tour).await?;
        self.steps(conn, steps, When::AfterInserts).await?;
        Ok(written)
    }

    async fn steps(&self, conn: &mut Session, steps: &Steps, when: When) -> Result<(), TxError> {
        for step in &steps.0 {
            let shape = &self.extra[step.shape];
            if shape.when == when {
                run(conn, shape, step, self.clock).await?;
            }
        }
        Ok(())
    }
}
