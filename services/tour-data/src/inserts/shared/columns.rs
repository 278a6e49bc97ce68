//! A tour's rows column by column, as UNNEST and stored functions take them.

use chrono::{DateTime, Utc};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use uuid::Uuid;

use crate::tour::{Address, NewTour, Order, Position, Stop, TenantId};

/// A statement that is being given its values.
type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// Binds the columns of the one row of `tour`.
pub(in crate::inserts) fn bind_tour<'q>(query: Statement<'q>, tenant: TenantId, tour: &'q NewTour) -> Statement<'q> {
    query
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
        .bind(tour.created_at)
}

/// The rows of the tables that a tour has many rows of.
#[derive(Default)]
pub(in crate::inserts) struct Columns<'a> {
    pub(in crate::inserts) addresses: Addresses<'a>,
    pub(in crate::inserts) stops: Stops<'a>,
    pub(in crate::inserts) orders: Orders<'a>,
    pub(in crate::inserts) positions: Positions<'a>,
}

#[derive(Default)]
pub(in crate::inserts) struct Addresses<'a> {
    id: Vec<Uuid>,
    name: Vec<&'a str>,
    contact_person: Vec<Option<&'a str>>,
    phone: Vec<Option<&'a str>>,
    street: Vec<&'a str>,
    postal_code: Vec<&'a str>,
    city: Vec<&'a str>,
    country_code: Vec<&'a str>,
    latitude_e6: Vec<i32>,
    longitude_e6: Vec<i32>,
}

#[derive(Default)]
pub(in crate::inserts) struct Stops<'a> {
    id: Vec<Uuid>,
    tour_id: Vec<Uuid>,
    address_id: Vec<Uuid>,
    sequence: Vec<i32>,
    stop_type: Vec<&'a str>,
    planned_arrival: Vec<DateTime<Utc>>,
    planned_departure: Vec<DateTime<Utc>>,
}

#[derive(Default)]
pub(in crate::inserts) struct Orders<'a> {
    id: Vec<Uuid>,
    stop_id: Vec<Uuid>,
    address_id: Vec<Uuid>,
    order_number: Vec<&'a str>,
    customer_number: Vec<&'a str>,
    order_type: Vec<&'a str>,
    reference: Vec<Option<&'a str>>,
}

#[derive(Default)]
pub(in crate::inserts) struct Positions<'a> {
    id: Vec<Uuid>,
    order_id: Vec<Uuid>,
    position_number: Vec<i32>,
    article_number: Vec<&'a str>,
    description: Vec<&'a str>,
    quantity: Vec<i32>,
    unit: Vec<&'a str>,
    weight_grams: Vec<i64>,
}

impl<'a> Columns<'a> {
    pub(in crate::inserts) fn of(tour: &'a NewTour) -> Self {
        let mut columns = Self::default();
        for stop in &tour.stops {
            columns.addresses.push(&stop.address);
            columns.stops.push(tour, stop);
            for order in &stop.orders {
                columns.addresses.push(&order.address);
                columns.orders.push(stop, order);
                for position in &order.positions {
                    columns.positions.push(order, position);
                }
            }
        }
        columns
    }

    /// Binds all of them, in the order of [`super::tables::MANY`].
    pub(in crate::inserts) fn bind<'q>(&'q self, query: Statement<'q>) -> Statement<'q> {
        let query = self.stops.bind(self.addresses.bind(query));
        self.positions.bind(self.orders.bind(query))
    }
}

impl<'a> Addresses<'a> {
    fn push(&mut self, address: &'a Address) {
        self.id.push(address.id);
        self.name.push(&address.name);
        self.contact_person.push(address.contact_person.as_deref());
        self.phone.push(address.phone.as_deref());
        self.street.push(&address.street);
        self.postal_code.push(&address.postal_code);
        self.city.push(&address.city);
        self.country_code.push(&address.country_code);
        self.latitude_e6.push(address.latitude_e6);
        self.longitude_e6.push(address.longitude_e6);
    }

    pub(in crate::inserts) fn bind<'q>(&'q self, query: Statement<'q>) -> Statement<'q> {
        query
            .bind(&self.id)
            .bind(&self.name)
            .bind(&self.contact_person)
            .bind(&self.phone)
            .bind(&self.street)
            .bind(&self.postal_code)
            .bind(&self.city)
            .bind(&self.country_code)
            .bind(&self.latitude_e6)
            .bind(&self.longitude_e6)
    }
}

impl<'a> Stops<'a> {
    fn push(&mut self, tour: &NewTour, stop: &'a Stop) {
        self.id.push(stop.id);
        self.tour_id.push(tour.id);
        self.address_id.push(stop.address.id);
        self.sequence.push(stop.sequence);
        self.stop_type.push(&stop.stop_type);
        self.planned_arrival.push(stop.planned_arrival);
        self.planned_departure.push(stop.planned_departure);
    }

    pub(in crate::inserts) fn bind<'q>(&'q self, query: Statement<'q>) -> Statement<'q> {
        query
            .bind(&self.id)
            .bind(&self.tour_id)
            .bind(&self.address_id)
            .bind(&self.sequence)
            .bind(&self.stop_type)
            .bind(&self.planned_arrival)
            .bind(&self.planned_departure)
    }
}

impl<'a> Orders<'a> {
    fn push(&mut self, stop: &Stop, order: &'a Order) {
        self.id.push(order.id);
        self.stop_id.push(stop.id);
        self.address_id.push(order.address.id);
        self.order_number.push(&order.order_number);
        self.customer_number.push(&order.customer_number);
        self.order_type.push(&order.order_type);
        self.reference.push(order.reference.as_deref());
    }

    pub(in crate::inserts) fn bind<'q>(&'q self, query: Statement<'q>) -> Statement<'q> {
        query
            .bind(&self.id)
            .bind(&self.stop_id)
            .bind(&self.address_id)
            .bind(&self.order_number)
            .bind(&self.customer_number)
            .bind(&self.order_type)
            .bind(&self.reference)
    }
}

impl<'a> Positions<'a> {
    fn push(&mut self, order: &Order, position: &'a Position) {
        self.id.push(position.id);
        self.order_id.push(order.id);
        self.position_number.push(position.position_number);
        self.article_number.push(&position.article_number);
        self.description.push(&position.description);
        self.quantity.push(position.quantity);
        self.unit.push(&position.unit);
        self.weight_grams.push(position.weight_grams);
    }

    pub(in crate::inserts) fn bind<'q>(&'q self, query: Statement<'q>) -> Statement<'q> {
        query
            .bind(&self.id)
            .bind(&self.order_id)
            .bind(&self.position_number)
            .bind(&self.article_number)
            .bind(&self.description)
            .bind(&self.quantity)
            .bind(&self.unit)
            .bind(&self.weight_grams)
    }
}
