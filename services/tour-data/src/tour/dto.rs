//! The JSON shapes of a tour. Requests and answers share them, so that what was sent can be read back.
//!
//! Unknown members are refused: a misspelt one would otherwise be lost without a word. Columns carry the same names as
//! members, so rows are read into these types without another set of them.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

/// Body of `POST /api/v1/tours`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct TourDto {
    pub tour_number: String,
    pub trip_number: String,
    pub tenant_config: TenantConfigDto,
    pub tour_status: String,
    pub tour_date: NaiveDate,
    pub vehicle: VehicleDto,
    pub driver: DriverDto,
    pub stops: Vec<StopDto>,
}

/// The tenant's configuration as the client knows it; every tour writes it back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct TenantConfigDto {
    pub tenant: String,
    pub tenant_key: String,
    pub tenant_info: Option<String>,
}

/// On which vehicle; the plate may be null.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct VehicleDto {
    pub vehicle_number: String,
    pub license_plate: Option<String>,
    pub vehicle_type: String,
}

/// Who drives; personal members may be null.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct DriverDto {
    pub driver_number: String,
    #[sqlx(rename = "driver_first_name")]
    pub first_name: Option<String>,
    #[sqlx(rename = "driver_last_name")]
    pub last_name: Option<String>,
    #[sqlx(rename = "driver_phone")]
    pub phone: Option<String>,
}

/// One stop with what is delivered there.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct StopDto {
    pub sequence: i32,
    pub stop_type: String,
    pub planned_arrival: DateTime<Utc>,
    pub planned_departure: DateTime<Utc>,
    #[sqlx(flatten)]
    pub address: AddressDto,
    #[sqlx(skip)]
    pub orders: Vec<OrderDto>,
}

/// Of a stop or an order; coordinates in millionths of a degree, personal members may be null.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct AddressDto {
    pub name: String,
    pub contact_person: Option<String>,
    pub phone: Option<String>,
    pub street: String,
    pub postal_code: String,
    pub city: String,
    pub country_code: String,
    pub latitude_e6: i32,
    pub longitude_e6: i32,
}

/// One order of a stop.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct OrderDto {
    pub order_number: String,
    pub customer_number: String,
    pub order_type: String,
    pub reference: Option<String>,
    #[sqlx(flatten)]
    pub delivery_address: AddressDto,
    #[sqlx(skip)]
    pub positions: Vec<PositionDto>,
}

/// One article of an order; the weight is that of one unit.
#[derive(Debug, Clone, Serialize, Deserialize, FromRow)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the members are the published payload's; their meaning is their name"
)]
pub struct PositionDto {
    pub position_number: i32,
    pub article_number: String,
    pub description: String,
    pub quantity: i32,
    pub unit: String,
    pub weight_grams: i64,
}
