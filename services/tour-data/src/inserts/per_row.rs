//! The published way: one INSERT a row, each a round trip of its own.
//!
//! What an ORM does that neither batches nor pipelines: 87 statements for the shipped payload. There is one text per
//! kind of row; with a text per row the statement cache of 100 would thrash.
//!
//! Gives up: time, a round trip per row, and with it the time that locks taken before are held. Not to be used where
//! the database is not on the same machine; it is here to be measured against.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use super::{Inserts, Program, Written};
use crate::placement::Home;
use crate::plan::{Clock, Incompatible, Isolation, Needs, Shape, Spec, Steps, Transaction, TxError, When, run};
use crate::tour::{Address, NewTour, Order, Position, Stop, TenantId};

pub(super) static SPEC: Spec = Spec {
    name: "per-row",
    summary: "one INSERT a row, each a round trip of its own",
    baseline: true,
    promise: None,
    needs: Needs {
        answers_between_steps: false,
    },
};

const TOUR: &str = "INSERT INTO tour (id, tenant_config_id, tour_number, trip_number, tour_status, tour_date, \
    vehicle_number, license_plate, vehicle_type, driver_number, driver_first_name, driver_last_name, driver_phone, \
    idempotency_key, request_digest, created_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
const ADDRESS: &str = "INSERT INTO address (id, name, contact_person, phone, street, postal_code, city, country_code, \
    latitude_e6, longitude_e6) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const STOP: &str = "INSERT INTO stop (id, tour_id, address_id, sequence, stop_type, planned_arrival, \
    planned_departure) VALUES ($1, $2, $3, $4, $5, $6, $7)";
const ORDER: &str = "INSERT INTO tour_order (id, stop_id, address_id, order_number, customer_number, order_type, \
    reference) VALUES ($1, $2, $3, $4, $5, $6, $7)";
const POSITION: &str = "INSERT INTO order_position (id, order_id, position_number, article_number, description, \
    quantity, unit, weight_grams) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(super) fn make() -> Arc<dyn Inserts> {
    Arc::new(PerRow)
}

struct PerRow;

impl Inserts for PerRow {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    /// Statements go one by one, so every step can be carried and every answer is there before the next one.
    fn compile(&self, extra: &[Shape], _needs: Needs, clock: Clock) -> Result<Arc<dyn Program>, Incompatible> {
        Ok(Arc::new(Statements {
            extra: extra.to_vec(),
            clock,
        }))
    }
}

struct Statements {
    extra: Vec<Shape>,
    clock: Clock,
}

#[async_trait]
impl Program for Statements {
    async fn commit(
        &self,
        home: &Home,
        isolation: Isolation,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<Written, TxError> {
        let mut transaction = Transaction::begin(&home.shard.db, isolation).await?;
        let rows = self
            .statements(transaction.connection(), home.tenant, tour, steps)
            .await;
        let rows = transaction.finish(rows).await?;
        Ok(Written {
            rows,
            statements: rows + steps.0.len() as u64 + 2,
        })
    }
}

impl Statements {
    async fn statements(
        &self,
        conn: &mut PgConnection,
        tenant: TenantId,
        tour: &NewTour,
        steps: &Steps,
    ) -> Result<u64, TxError> {
        self.steps(conn, steps, When::BeforeInserts).await?;
        let rows = rows(conn, tenant, tour).await?;
        self.steps(conn, steps, When::AfterInserts).await?;
        Ok(rows)
    }

    async fn steps(&self, conn: &mut PgConnection, steps: &Steps, when: When) -> Result<(), TxError> {
        for step in &steps.0 {
            let shape = &self.extra[step.shape];
            if shape.when == when {
                run(conn, shape, step, self.clock).await?;
            }
        }
        Ok(())
    }
}

/// Parents before their children.
async fn rows(conn: &mut PgConnection, tenant: TenantId, tour: &NewTour) -> Result<u64, TxError> {
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

async fn insert_tour(conn: &mut PgConnection, tenant: TenantId, tour: &NewTour) -> Result<u64, TxError> {
    let query = sqlx::query(TOUR)
        .bind(tour.id)
        .bind(tenant.0)
        .bind(&tour.tour_number)
        .bind(&tour.trip_number)
        .bind(&tour.tour_status)
        .bind(tour.tour_date)
        .bind(&tour.vehicle.vehicle_number)
        .bind(&tour.vehicle.license_plate)
        .bind(&tour.vehicle.vehicle_type)
        .bind(&tour.driver.driver_number)
        .bind(&tour.driver.first_name)
        .bind(&tour.driver.last_name)
        .bind(&tour.driver.phone)
        .bind(&tour.idempotency_key)
        .bind(tour.request_digest.as_slice())
        .bind(tour.created_at);
    one(conn, "INSERT tour", query).await
}

async fn insert_address(conn: &mut PgConnection, address: &Address) -> Result<u64, TxError> {
    let query = sqlx::query(ADDRESS)
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

async fn insert_stop(conn: &mut PgConnection, tour: &NewTour, stop: &Stop) -> Result<u64, TxError> {
    let query = sqlx::query(STOP)
        .bind(stop.id)
        .bind(tour.id)
        .bind(stop.address.id)
        .bind(stop.sequence)
        .bind(&stop.stop_type)
        .bind(stop.planned_arrival)
        .bind(stop.planned_departure);
    one(conn, "INSERT stop", query).await
}

async fn insert_order(conn: &mut PgConnection, stop: &Stop, order: &Order) -> Result<u64, TxError> {
    let query = sqlx::query(ORDER)
        .bind(order.id)
        .bind(stop.id)
        .bind(order.address.id)
        .bind(&order.order_number)
        .bind(&order.customer_number)
        .bind(&order.order_type)
        .bind(&order.reference);
    one(conn, "INSERT tour_order", query).await
}

async fn insert_position(conn: &mut PgConnection, order: &Order, position: &Position) -> Result<u64, TxError> {
    let query = sqlx::query(POSITION)
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
    conn: &mut PgConnection,
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
