//! The published way: one INSERT a row, each a round trip of its own.
//!
//! What an ORM does that neither batches nor pipelines: 87 statements for the shipped payload. There is one text per
//! kind of row; with a text per row the statement cache of 100 would thrash.
//!
//! Gives up: time, a round trip per row, and with it the time that locks taken before are held. Not to be used where
//! the database is not on the same machine; it is here to be measured against.

use std::sync::{Arc, LazyLock};

use chassis::db::Session;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::shared::columns::bind_tour;
use super::shared::stepwise::{Rows, Stepwise};
use super::shared::tables::{ADDRESS, ORDER, POSITION, STOP, TOUR};
use super::{Inserts, Program, Written};
use crate::plan::{Clock, Incompatible, Needs, Shape, Spec, TxError};
use crate::tour::{Address, NewTour, Order, Position, Stop, TenantId};

pub(super) static SPEC: Spec = Spec {
    name: "per-row",
    summary: "one INSERT a row, each a round trip of its own",
    baseline: true,
    promise: None,
    needs: Needs::NONE,
};

/// One a kind of row.
struct Texts {
    tour: String,
    address: String,
    stop: String,
    order: String,
    position: String,
}

static TEXTS: LazyLock<Texts> = LazyLock::new(|| Texts {
    tour: TOUR.insert_one(1),
    address: ADDRESS.insert_one(1),
    stop: STOP.insert_one(1),
    order: ORDER.insert_one(1),
    position: POSITION.insert_one(1),
});

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(PerRow)
}

struct PerRow;

impl Inserts for PerRow {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn compile(&self, extra: &[Shape], _needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        Ok(Arc::new(Stepwise {
            rows: OneByOne,
            extra: extra.to_vec(),
            clock,
        }))
    }
}

struct OneByOne;

impl Rows for OneByOne {
    async fn insert(&self, conn: &mut Session, tenant: TenantId, tour: &NewTour) -> Result<Written, TxError> {
        let rows = rows(conn, tenant, tour).await?;
        Ok(Written { rows, statements: rows })
    }
}

/// Parents before their children.
async fn rows(conn: &mut Session, tenant: TenantId, tour: &NewTour) -> Result<u64, TxError> {
    let mut rows = insert_tour(conn, tenant, tour).await?;
    for stop in &tour.stops {
        rows += insert_address(conn, &stop.address).await?;
        rows += insert_stop(conn, tour, stop).await?;
        for order in &stop.orders {
            rows += insert_address(conn, &order.address).await?;
            rows += insert_order(conn, stop, order).await?;
            for position in &order.positions {
                rows += insert_position(conn, order, position).await?;
            }
        }
    }
    Ok(rows)
}

async fn insert_tour(conn: &mut Session, tenant: TenantId, tour: &NewTour) -> Result<u64, TxError> {
    one(
        conn,
        "INSERT tour",
        bind_tour(sqlx::query(TEXTS.tour.as_str()), tenant, tour),
    )
    .await
}

async fn insert_address(conn: &mut Session, address: &Address) -> Result<u64, TxError> {
    let query = sqlx::query(TEXTS.address.as_str())
        .bind(address.id)
        .bind(&address.name)
        .bind(&address.contact_person)
        .bind(&address.phone)
        .bind(&address.street)
        .bind(&address.postal_code)
        .bind(&address.city)
        .bind(&address.country_code)
        .bind(address.latitude_e6)
        .bind(address.longitude_e6);
    one(conn, "INSERT address", query).await
}

async fn insert_stop(conn: &mut Session, tour: &NewTour, stop: &Stop) -> Result<u64, TxError> {
    let query = sqlx::query(TEXTS.stop.as_str())
        .bind(stop.id)
        .bind(tour.id)
        .bind(stop.address.id)
        .bind(stop.sequence)
        .bind(&stop.stop_type)
        .bind(stop.planned_arrival)
        .bind(stop.planned_departure);
    one(conn, "INSERT stop", query).await
}

async fn insert_order(conn: &mut Session, stop: &Stop, order: &Order) -> Result<u64, TxError> {
    let query = sqlx::query(TEXTS.order.as_str())
        .bind(order.id)
        .bind(stop.id)
        .bind(order.address.id)
        .bind(&order.order_number)
        .bind(&order.customer_number)
        .bind(&order.order_type)
        .bind(&order.reference);
    one(conn, "INSERT tour_order", query).await
}

async fn insert_position(conn: &mut Session, order: &Order, position: &Position) -> Result<u64, TxError> {
    let query = sqlx::query(TEXTS.position.as_str())
        .bind(position.id)
        .bind(order.id)
        .bind(position.position_number)
        .bind(&position.article_number)
        .bind(&position.description)
        .bind(position.quantity)
        .bind(&position.unit)
        .bind(position.weight_grams);
    one(conn, "INSERT order_position", query).await
}

/// Sends the statement and insists on the one row.
async fn one(
    conn: &mut Session,
    statement: &'static str,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<u64, TxError> {
    match query.execute(conn).await?.rows_affected() {
        1 => Ok(1),
        found => Err(TxError::Unexpected {
            statement,
            expected: 1,
            found,
        }),
    }
}
