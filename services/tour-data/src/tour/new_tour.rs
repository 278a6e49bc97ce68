//! A tour that can be written: every text fits, every list is within its bound, every row has its id.
//!
//! Only [`super::parse`] makes one.

use std::fmt;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use super::{DriverDto, VehicleDto};

/// Key of a tenant, such as `BEHNGT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TenantKey(String);

impl TenantKey {
    /// Most bytes of a key.
    pub(super) const MAX: usize = 64;

    /// Letters, digits, `-` and `_`; `None` if `text` is no key.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=Self::MAX).contains(&text.len());
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        (fits && plain).then(|| Self(text.to_owned()))
    }

    /// The key as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `tenant_config.id`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantId(pub i64);

/// What the tour writes into its tenant's row.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Display name.
    pub tenant: String,
    /// Which tenant.
    pub key: TenantKey,
    /// Free text.
    pub info: Option<String>,
}

/// A parsed request.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are columns of `tour`; their meaning is their name"
)]
pub struct NewTour {
    pub id: Uuid,
    /// Whole microseconds.
    pub created_at: DateTime<Utc>,
    pub idempotency_key: Option<String>,
    /// SHA-256 of the request's content.
    pub request_digest: [u8; 32],
    pub tenant: Tenant,
    pub tour_number: String,
    pub trip_number: String,
    pub tour_status: String,
    pub tour_date: NaiveDate,
    pub vehicle: VehicleDto,
    pub driver: DriverDto,
    pub stops: Vec<Stop>,
}

/// A stop with the ids of its own row and its address's.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are columns of `stop`; their meaning is their name"
)]
pub struct Stop {
    pub id: Uuid,
    pub sequence: i32,
    pub stop_type: String,
    pub planned_arrival: DateTime<Utc>,
    pub planned_departure: DateTime<Utc>,
    pub address: Address,
    pub orders: Vec<Order>,
}

/// An address row.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are columns of `address`; their meaning is their name"
)]
pub struct Address {
    pub id: Uuid,
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

/// An order of a stop.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are columns of `tour_order`; their meaning is their name"
)]
pub struct Order {
    pub id: Uuid,
    pub order_number: String,
    pub customer_number: String,
    pub order_type: String,
    pub reference: Option<String>,
    pub address: Address,
    pub positions: Vec<Position>,
}

/// A position of an order.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the fields are columns of `order_position`; their meaning is their name"
)]
pub struct Position {
    pub id: Uuid,
    pub position_number: i32,
    pub article_number: String,
    pub description: String,
    pub quantity: i32,
    pub unit: String,
    pub weight_grams: i64,
}
