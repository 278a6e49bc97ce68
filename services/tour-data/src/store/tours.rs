//! Tours as readers get them.

use std::collections::HashMap;

use chassis::db::Session;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;

use super::{StoreError, read};
use crate::placement::Shard;
use crate::tour::{DriverDto, OrderDto, PositionDto, StopDto, TenantId, VehicleDto};

/// Answer of `GET /api/v1/tours/{id}`. It never changes once it exists, so the tenant's configuration, which does, is
/// not part of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TourDocument {
    /// Head of the tour.
    #[serde(flatten)]
    pub summary: TourSummary,
    /// Key of the tenant it belongs to.
    pub tenant_key: String,
    /// As in the request.
    pub vehicle: VehicleDto,
    /// As in the request.
    pub driver: DriverDto,
    /// By their sequence; orders by number, positions by position number.
    pub stops: Vec<StopDto>,
}

/// A tour in a list.
#[derive(Debug, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct TourSummary {
    pub id: Uuid,
    pub tour_number: String,
    pub trip_number: String,
    pub tour_status: String,
    pub tour_date: NaiveDate,
    pub created_at: DateTime<Utc>,
}

/// Answer of `GET /api/v1/tours`.
#[derive(Debug, Serialize)]
pub struct TourPage {
    /// Newest first.
    pub tours: Vec<TourSummary>,
    /// Pass it as `after` for the next page; none on the last one.
    pub next: Option<Uuid>,
}

/// A page of a tenant's tours, newest first, from the one after `after` on. By keyset on the id, which carries the
/// time of creation: pages cost the same however far they are, and a tour that is created meanwhile shifts none.
///
/// # Errors
/// [`StoreError`]
pub async fn tours_page(
    shard: &Shard,
    tenant: TenantId,
    after: Option<Uuid>,
    limit: u16,
) -> Result<TourPage, StoreError> {
    const SQL: &str = "SELECT id, tour_number, trip_number, tour_status, tour_date, created_at FROM tour \
        WHERE tenant_config_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let before = after.unwrap_or(Uuid::max());
    // One more than asked for says whether there is a next page.
    let mut tours: Vec<TourSummary> = read(&shard.db, "SELECT tour page", async |conn| {
        sqlx::query_as(SQL)
            .bind(tenant.0)
            .bind(before)
            .bind(i64::from(limit) + 1)
            .fetch_all(&mut *conn)
            .await
    })
    .await?;
    let more = tours.len() > usize::from(limit);
    tours.truncate(limit.into());
    let next = if more { tours.last().map(|tour| tour.id) } else { None };
    Ok(TourPage { tours, next })
}

/// The whole tour.
///
/// # Errors
/// [`StoreError`]
pub async fn tour(shard: &Shard, id: Uuid) -> Result<Option<TourDocument>, StoreError> {
    read(&shard.db, "SELECT tour document", async |conn| document(conn, id).await).await
}

#[derive(FromRow)]
struct TourRow {
    #[sqlx(flatten)]
    summary: TourSummary,
    tenant_key: String,
    #[sqlx(flatten)]
    vehicle: VehicleDto,
    #[sqlx(flatten)]
    driver: DriverDto,
}

#[derive(FromRow)]
struct StopRow {
    id: Uuid,
    #[sqlx(flatten)]
    stop: StopDto,
}

#[derive(FromRow)]
struct OrderRow {
    id: Uuid,
    stop_id: Uuid,
    #[sqlx(flatten)]
    order: OrderDto,
}

#[derive(FromRow)]
struct PositionRow {
    order_id: Uuid,
    #[sqlx(flatten)]
    position: PositionDto,
}

const TOUR: &str = "SELECT t.id, t.tour_number, t.trip_number, t.tour_status, t.tour_date, t.created_at, \
    t.vehicle_number, t.license_plate, t.vehicle_type, t.driver_number, t.driver_first_name, t.driver_last_name, \
    t.driver_phone, c.tenant_key \
    FROM tour t JOIN tenant_config c ON c.id = t.tenant_config_id WHERE t.id = $1";
const STOPS: &str = "SELECT s.id, s.sequence, s.stop_type, s.planned_arrival, s.planned_departure, \
    a.name, a.contact_person, a.phone, a.street, a.postal_code, a.city, a.country_code, a.latitude_e6, a.longitude_e6 \
    FROM stop s JOIN address a ON a.id = s.address_id WHERE s.tour_id = $1 ORDER BY s.sequence, s.id";
const ORDERS: &str = "SELECT o.id, o.stop_id, o.order_number, o.customer_number, o.order_type, o.reference, \
    a.name, a.contact_person, a.phone, a.street, a.postal_code, a.city, a.country_code, a.latitude_e6, a.longitude_e6 \
    FROM tour_order o JOIN address a ON a.id = o.address_id WHERE o.stop_id = ANY($1) ORDER BY o.order_number, o.id";
const POSITIONS: &str = "SELECT order_id, position_number, article_number, description, quantity, unit, weight_grams \
    FROM order_position WHERE order_id = ANY($1) ORDER BY position_number, id";

/// Four statements; rows of a tour never change, so they need no common snapshot.
async fn document(conn: &mut Session, id: Uuid) -> Result<Option<TourDocument>, sqlx::Error> {
    let Some(tour) = sqlx::query_as::<_, TourRow>(TOUR)
        .bind(id)
        .fetch_optional(&mut *conn)
        .await?
    else {
        return Ok(None);
    };
    let stops: Vec<StopRow> = sqlx::query_as(STOPS).bind(id).fetch_all(&mut *conn).await?;
    let stop_ids: Vec<Uuid> = stops.iter().map(|row| row.id).collect();
    let orders: Vec<OrderRow> = sqlx::query_as(ORDERS).bind(stop_ids).fetch_all(&mut *conn).await?;
    let order_ids: Vec<Uuid> = orders.iter().map(|row| row.id).collect();
    let positions: Vec<PositionRow> = sqlx::query_as(POSITIONS).bind(order_ids).fetch_all(&mut *conn).await?;
    Ok(Some(assemble(tour, stops, orders, positions)))
}

fn assemble(tour: TourRow, stops: Vec<StopRow>, orders: Vec<OrderRow>, positions: Vec<PositionRow>) -> TourDocument {
    let mut positions_of: HashMap<Uuid, Vec<PositionDto>> = HashMap::new();
    for PositionRow { order_id, position } in positions {
        positions_of.entry(order_id).or_default().push(position);
    }
    let mut orders_of: HashMap<Uuid, Vec<OrderDto>> = HashMap::new();
    for OrderRow { id, stop_id, order } in orders {
        let positions = positions_of.remove(&id).unwrap_or_default();
        orders_of
            .entry(stop_id)
            .or_default()
            .push(OrderDto { positions, ..order });
    }
    let stops = stops.into_iter().map(|StopRow { id, stop }| {
        let orders = orders_of.remove(&id).unwrap_or_default();
        StopDto { orders, ..stop }
    });
    TourDocument {
        summary: tour.summary,
        tenant_key: tour.tenant_key,
        vehicle: tour.vehicle,
        driver: tour.driver,
        stops: stops.collect(),
    }
}
