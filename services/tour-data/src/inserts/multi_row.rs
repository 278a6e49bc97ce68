//! One INSERT a table: the rows travel as one array a column, and UNNEST makes rows of them.
//!
//! Five statements for a tour of any size, with five texts, so the statement cache holds. A multi-row VALUES would need a
//! text for each number of rows. A lock that is taken before the inserts is held for six round trips and no longer for 88, and
//! what is left of it still matters: with the UPDATE behind the inserts a tenant gets twice as many tours through.
//!
//! Gives up: the row number in an error, since a statement fails as a whole, and the plain look of an INSERT. Not to be used
//! where an ORM has to own the statements. There is no case in which it is slower.

use std::sync::{Arc, LazyLock};

use chassis::db::Session;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::shared::columns::{Columns, bind_tour};
use super::shared::stepwise::{Rows, Stepwise};
use super::shared::tables::{MANY, TOUR};
use super::{Inserts, Program, Written};
use crate::plan::{Clock, Incompatible, Needs, Shape, Spec, TxError};
use crate::tour::{NewTour, TenantId};

pub(super) static SPEC: Spec = Spec {
    name: "multi-row",
    summary: "one INSERT … SELECT FROM unnest(…) a table",
    baseline: false,
    promise: None,
    needs: Needs::NONE,
};

static ONE: LazyLock<String> = LazyLock::new(|| TOUR.insert_one(1));
static TEXTS: LazyLock<[String; 4]> = LazyLock::new(|| MANY.map(|table| table.insert_many(1)));

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(MultiRow)
}

struct MultiRow;

impl Inserts for MultiRow {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], _needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        Ok(Arc::new(Stepwise {
            rows: TableByTable,
            extra: extra.to_vec(),
            clock,
        }))
    }
}

struct TableByTable;

impl Rows for TableByTable {
    async fn insert(&self, conn: &mut Session, tenant: TenantId, tour: &NewTour) -> Result<Written, TxError> {
        let columns = Columns::of(tour);
        let [addresses, stops, orders, positions] = TEXTS.each_ref().map(String::as_str);
        let mut rows = table(conn, bind_tour(sqlx::query(ONE.as_str()), tenant, tour)).await?;
        rows += table(conn, columns.addresses.bind(sqlx::query(addresses))).await?;
        rows += table(conn, columns.stops.bind(sqlx::query(stops))).await?;
        rows += table(conn, columns.orders.bind(sqlx::query(orders))).await?;
        rows += table(conn, columns.positions.bind(sqlx::query(positions))).await?;
        Ok(Written { rows, statements: 5 })
    }
}

/// The rows that went in.
async fn table(conn: &mut Session, query: Query<'_, Postgres, PgArguments>) -> Result<u64, TxError> {
    Ok(query.execute(conn).await?.rows_affected())
}
