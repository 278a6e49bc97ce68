//! The rows of a tour as the second driver takes them.

use tokio_postgres::types::ToSql;

use crate::tour::{Address, NewTour, Order, Position, Stop, TenantId};

/// A row: its table's number in [`ALL`](super::super::tables::ALL), and its values in the order of the columns.
pub(in crate::inserts) struct Row<'a> {
    pub(in crate::inserts) table: usize,
    pub(in crate::inserts) values: Vec<&'a (dyn ToSql + Sync)>,
}

/// What the rows are borrowed from.
pub(in crate::inserts) struct Source<'a> {
    tenant: &'a TenantId,
    tour: &'a NewTour,
    digest: &'a [u8],
}

impl<'a> Source<'a> {
    pub(in crate::inserts) fn new(tenant: &'a TenantId, tour: &'a NewTour) -> Self {
        Self {
            tenant,
            tour,
            digest: &tour.request_digest,
        }
    }

    /// Parents before their children.
    pub(in crate::inserts) fn rows(&'a self) -> Vec<Row<'a>> {
        let mut rows = vec![self.head()];
        for stop in &self.tour.stops {
            rows.push(address(&stop.address));
            rows.push(self.stop(stop));
            for order in &stop.orders {
                rows.push(address(&order.address));
                rows.push(tour_order(stop, order));
                rows.extend(order.positions.iter().map(|position| order_position(order, position)));
            }
        }
        rows
    }

    fn head(&'a self) -> Row<'a> {
        let tour = self.tour;
        Row {
            table: 0,
            values: vec![
                &tour.id,
                &self.tenant.0,
                &tour.tour_number,
                &tour.trip_number,
                &tour.tour_status,
                &tour.tour_date,
                &tour.vehicle.vehicle_number,
                &tour.vehicle.license_plate,
                &tour.vehicle.vehicle_type,
                &tour.driver.driver_number,
                &tour.driver.first_name,
                &tour.driver.last_name,
                &tour.driver.phone,
                &tour.idempotency_key,
                &self.digest,
                &tour.created_at,
            ],
        }
    }

    fn stop(&self, stop: &'a Stop) -> Row<'a> {
        Row {
            table: 2,
            values: vec![
                &stop.id,
                &self.tour.id,
                &stop.address.id,
                &stop.sequence,
                &stop.stop_type,
                &stop.planned_arrival,
                &stop.planned_departure,
            ],
        }
    }
}

fn address(address: &Address) -> Row<'_> {
    Row {
        table: 1,
        values: vec![
            &address.id,
            &address.name,
            &address.contact_person,
            &address.phone,
            &address.street,
            &address.postal_code,
            &address.city,
            &address.country_code,
            &address.latitude_e6,
            &address.longitude_e6,
        ],
    }
}

fn tour_order<'a>(stop: &'a Stop, order: &'a Order) -> Row<'a> {
    Row {
        table: 3,
        values: vec![
            &order.id,
            &stop.id,
            &order.address.id,
            &order.order_number,
            &order.customer_number,
            &order.order_type,
            &order.reference,
        ],
    }
}

fn order_position<'a>(order: &'a Order, position: &'a Position) -> Row<'a> {
    Row {
        table: 4,
        values: vec![
            &position.id,
            &order.id,
            &position.position_number,
            &position.article_number,
            &position.description,
            &position.quantity,
            &position.unit,
            &position.weight_grams,
        ],
    }
}
