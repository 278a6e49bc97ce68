//! From a request's JSON to a [`NewTour`], or to every reason why it is none.

use chrono::{DateTime, Datelike as _, SubsecRound as _, Utc};
use uuid::Uuid;

use super::path::Path;
use super::{
    Address, AddressDto, DriverDto, NewTour, Order, OrderDto, Position, PositionDto, Stop, StopDto, Tenant, TenantKey,
    TourDto, VehicleDto,
};

/// Most stops of a tour, orders of a stop and positions of an order: ten times the published payload, so that one
/// request cannot keep a tenant's row locked for minutes.
const MAX_STOPS: usize = 90;
const MAX_ORDERS: usize = 50;
const MAX_POSITIONS: usize = 50;
/// Most rows of a tour in all.
const MAX_ROWS: usize = 1000;
/// Most characters of numbers and codes, of names, and of free text.
const CODE: usize = 64;
const NAME: usize = 200;
const FREE: usize = 2000;
/// Reasons reported at once; a body that is wrong throughout is not answered with its own size again.
const MAX_REASONS: usize = 10;

/// What a tour gets from outside of the body.
pub struct Identity<'a> {
    /// The service's clock.
    pub now: DateTime<Utc>,
    /// Makes the id of each row.
    pub new_id: &'a mut dyn FnMut() -> Uuid,
    /// From the request's header.
    pub idempotency_key: Option<String>,
    /// SHA-256 of the request's content.
    pub request_digest: [u8; 32],
}

/// One thing wrong with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// JSON pointer to it.
    pub pointer: String,
    /// What is wrong and what would be right.
    pub reason: String,
}

/// Checks everything and reports up to ten things at once.
///
/// # Errors
/// At least one [`Invalid`].
pub fn parse(dto: TourDto, identity: Identity<'_>) -> Result<NewTour, Vec<Invalid>> {
    let root = Path::ROOT;
    let mut check = Check {
        problems: Vec::new(),
        new_id: identity.new_id,
    };
    check.count(root.member("stops"), dto.stops.len(), 1, MAX_STOPS);
    let rows = rows(&dto);
    if rows > MAX_ROWS {
        check.invalid(root, || {
            format!("the tour has {rows} rows, at most {MAX_ROWS} are accepted")
        });
    }
    // A body past its bounds is not walked: its problems would be as many as it has members.
    if let [_, ..] = check.problems[..] {
        return Err(check.problems);
    }
    let tenant = check.tenant(root.member("tenantConfig"), dto.tenant_config);
    if !(1..=9999).contains(&dto.tour_date.year()) {
        check.invalid(root.member("tourDate"), || "the year is outside 1 to 9999".to_owned());
    }
    let tour = NewTour {
        id: (check.new_id)(),
        created_at: identity.now.trunc_subsecs(6),
        idempotency_key: identity.idempotency_key,
        request_digest: identity.request_digest,
        tour_number: check.text(root.member("tourNumber"), dto.tour_number, CODE),
        trip_number: check.text(root.member("tripNumber"), dto.trip_number, CODE),
        tour_status: check.text(root.member("tourStatus"), dto.tour_status, CODE),
        tour_date: dto.tour_date,
        vehicle: check.vehicle(root.member("vehicle"), dto.vehicle),
        driver: check.driver(root.member("driver"), dto.driver),
        stops: check.each(root.member("stops"), dto.stops, Check::stop),
        tenant: match tenant {
            Some(tenant) => tenant,
            None => return Err(check.problems),
        },
    };
    if check.problems.is_empty() {
        Ok(tour)
    } else {
        Err(check.problems)
    }
}

/// Rows that the tour will have in the database.
fn rows(dto: &TourDto) -> usize {
    let orders = dto.stops.iter().flat_map(|stop| &stop.orders);
    1 + 2 * dto.stops.len() + orders.map(|order| 2 + order.positions.len()).sum::<usize>()
}

struct Check<'a> {
    problems: Vec<Invalid>,
    new_id: &'a mut dyn FnMut() -> Uuid,
}

impl Check<'_> {
    fn invalid(&mut self, at: Path<'_>, reason: impl FnOnce() -> String) {
        if self.problems.len() < MAX_REASONS {
            self.problems.push(Invalid {
                pointer: at.to_string(),
                reason: reason(),
            });
        }
    }

    fn count(&mut self, at: Path<'_>, found: usize, least: usize, most: usize) {
        if !(least..=most).contains(&found) {
            self.invalid(at, || format!("has {found} entries, expected {least} to {most}"));
        }
    }

    fn text(&mut self, at: Path<'_>, text: String, most: usize) -> String {
        if text.trim().is_empty() {
            self.invalid(at, || "is empty".to_owned());
        }
        self.free(at, text, most)
    }

    fn free(&mut self, at: Path<'_>, text: String, most: usize) -> String {
        // Bytes first: they are known, and most texts are short.
        if text.len() > most && text.chars().count() > most {
            self.invalid(at, || {
                format!("has {} characters, at most {most} are accepted", text.chars().count())
            });
        }
        if text.contains('\0') {
            self.invalid(at, || {
                "holds the character U+0000, which PostgreSQL cannot store".to_owned()
            });
        }
        text
    }

    fn optional(&mut self, at: Path<'_>, text: Option<String>, most: usize) -> Option<String> {
        text.map(|text| self.free(at, text, most))
    }

    fn within(&mut self, at: Path<'_>, value: i64, least: i64, most: i64) {
        if !(least..=most).contains(&value) {
            self.invalid(at, || format!("is {value}, expected {least} to {most}"));
        }
    }

    /// PostgreSQL and chrono agree on the years of our era with four digits; no tour is planned outside of them.
    fn time(&mut self, at: Path<'_>, time: DateTime<Utc>) -> DateTime<Utc> {
        if !(1..=9999).contains(&time.year()) {
            self.invalid(at, || "the year is outside 1 to 9999".to_owned());
        }
        time
    }

    fn each<D, T>(&mut self, at: Path<'_>, list: Vec<D>, one: fn(&mut Self, Path<'_>, D) -> T) -> Vec<T> {
        list.into_iter()
            .enumerate()
            .map(|(index, dto)| one(self, at.index(index), dto))
            .collect()
    }

    fn tenant(&mut self, at: Path<'_>, dto: super::TenantConfigDto) -> Option<Tenant> {
        let Some(key) = TenantKey::parse(&dto.tenant_key) else {
            let most = TenantKey::MAX;
            self.invalid(at.member("tenantKey"), || {
                format!("is not 1 to {most} letters, digits, '-' or '_'")
            });
            return None;
        };
        let tenant = self.text(at.member("tenant"), dto.tenant, NAME);
        let info = self.optional(at.member("tenantInfo"), dto.tenant_info, FREE);
        Some(Tenant { tenant, key, info })
    }

    fn vehicle(&mut self, at: Path<'_>, dto: VehicleDto) -> VehicleDto {
        VehicleDto {
            vehicle_number: self.text(at.member("vehicleNumber"), dto.vehicle_number, CODE),
            license_plate: self.optional(at.member("licensePlate"), dto.license_plate, CODE),
            vehicle_type: self.text(at.member("vehicleType"), dto.vehicle_type, CODE),
        }
    }

    fn driver(&mut self, at: Path<'_>, dto: DriverDto) -> DriverDto {
        DriverDto {
            driver_number: self.text(at.member("driverNumber"), dto.driver_number, CODE),
            first_name: self.optional(at.member("firstName"), dto.first_name, NAME),
            last_name: self.optional(at.member("lastName"), dto.last_name, NAME),
            phone: self.optional(at.member("phone"), dto.phone, CODE),
        }
    }

    fn stop(&mut self, at: Path<'_>, dto: StopDto) -> Stop {
        self.count(at.member("orders"), dto.orders.len(), 0, MAX_ORDERS);
        self.within(at.member("sequence"), dto.sequence.into(), 1, 10_000);
        if dto.planned_departure < dto.planned_arrival {
            self.invalid(at.member("plannedDeparture"), || "is before plannedArrival".to_owned());
        }
        Stop {
            id: (self.new_id)(),
            sequence: dto.sequence,
            stop_type: self.text(at.member("stopType"), dto.stop_type, CODE),
            planned_arrival: self.time(at.member("plannedArrival"), dto.planned_arrival),
            planned_departure: self.time(at.member("plannedDeparture"), dto.planned_departure),
            address: self.address(at.member("address"), dto.address),
            orders: self.each(at.member("orders"), dto.orders, Self::order),
        }
    }

    fn address(&mut self, at: Path<'_>, dto: AddressDto) -> Address {
        self.within(at.member("latitudeE6"), dto.latitude_e6.into(), -90_000_000, 90_000_000);
        self.within(
            at.member("longitudeE6"),
            dto.longitude_e6.into(),
            -180_000_000,
            180_000_000,
        );
        Address {
            id: (self.new_id)(),
            name: self.text(at.member("name"), dto.name, NAME),
            contact_person: self.optional(at.member("contactPerson"), dto.contact_person, NAME),
            phone: self.optional(at.member("phone"), dto.phone, CODE),
            street: self.text(at.member("street"), dto.street, NAME),
            postal_code: self.text(at.member("postalCode"), dto.postal_code, CODE),
            city: self.text(at.member("city"), dto.city, NAME),
            country_code: self.text(at.member("countryCode"), dto.country_code, 2),
            latitude_e6: dto.latitude_e6,
            longitude_e6: dto.longitude_e6,
        }
    }

    fn order(&mut self, at: Path<'_>, dto: OrderDto) -> Order {
        self.count(at.member("positions"), dto.positions.len(), 0, MAX_POSITIONS);
        Order {
            id: (self.new_id)(),
            order_number: self.text(at.member("orderNumber"), dto.order_number, CODE),
            customer_number: self.text(at.member("customerNumber"), dto.customer_number, CODE),
            order_type: self.text(at.member("orderType"), dto.order_type, CODE),
            reference: self.optional(at.member("reference"), dto.reference, NAME),
            address: self.address(at.member("deliveryAddress"), dto.delivery_address),
            positions: self.each(at.member("positions"), dto.positions, Self::position),
        }
    }

    fn position(&mut self, at: Path<'_>, dto: PositionDto) -> Position {
        self.within(at.member("positionNumber"), dto.position_number.into(), 1, 10_000);
        self.within(at.member("quantity"), dto.quantity.into(), 1, 1_000_000);
        self.within(at.member("weightGrams"), dto.weight_grams, 0, 1_000_000_000);
        Position {
            id: (self.new_id)(),
            position_number: dto.position_number,
            article_number: self.text(at.member("articleNumber"), dto.article_number, CODE),
            description: self.text(at.member("description"), dto.description, NAME),
            quantity: dto.quantity,
            unit: self.text(at.member("unit"), dto.unit, CODE),
            weight_grams: dto.weight_grams,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &str = include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../loadtests/payloads/create-tour.json"
    ));

    fn payload() -> TourDto {
        serde_json::from_str(PAYLOAD).expect("the shipped payload is a tour")
    }

    fn parsed(dto: TourDto) -> Result<NewTour, Vec<Invalid>> {
        let mut ids = 0;
        let mut new_id = || {
            ids += 1;
            Uuid::from_u128(ids)
        };
        let now = DateTime::from_timestamp_nanos(1_700_000_000_123_456_789);
        parse(
            dto,
            Identity {
                now,
                new_id: &mut new_id,
                idempotency_key: None,
                request_digest: [0; 32],
            },
        )
    }

    fn pointers(dto: TourDto) -> Vec<String> {
        parsed(dto)
            .expect_err("it is invalid")
            .into_iter()
            .map(|invalid| invalid.pointer)
            .collect()
    }

    #[test]
    fn the_shipped_payload_has_the_published_shape() {
        let dto = payload();
        assert_eq!(rows(&dto), 87);
        let tour = parsed(dto).expect("it is valid");
        let orders: Vec<_> = tour.stops.iter().flat_map(|stop| &stop.orders).collect();
        let positions = orders.iter().map(|order| order.positions.len()).sum::<usize>();
        assert_eq!((tour.stops.len(), orders.len(), positions), (9, 17, 34));
        assert_eq!(tour.tenant.key.as_str(), "BEHNGT");
        assert_eq!(tour.created_at.timestamp_subsec_nanos(), 123_456_000);
    }

    #[test]
    fn every_invalid_member_is_named() {
        let mut dto = payload();
        dto.tour_number = "  ".to_owned();
        dto.stops[1].address.city = "x".repeat(201);
        dto.stops[2].orders[1].positions[0].unit = "a\0b".to_owned();
        dto.stops[3].address.latitude_e6 = 90_000_001;
        let expected = [
            "/tourNumber",
            "/stops/1/address/city",
            "/stops/2/orders/1/positions/0/unit",
            "/stops/3/address/latitudeE6",
        ];
        assert_eq!(pointers(dto), expected);
    }

    #[test]
    fn lengths_count_characters_and_not_bytes() {
        let mut dto = payload();
        dto.stops[0].address.city = "ü".repeat(200);
        assert!(parsed(dto).is_ok());
    }

    #[test]
    fn lists_are_bounded() {
        let mut dto = payload();
        dto.stops.clear();
        assert_eq!(pointers(dto), ["/stops"]);

        let mut dto = payload();
        let order = dto.stops[0].orders[0].clone();
        dto.stops[0].orders = vec![order; MAX_ORDERS + 1];
        assert_eq!(pointers(dto), ["/stops/0/orders"]);

        let mut dto = payload();
        let stop = dto.stops[0].clone();
        dto.stops = vec![stop; MAX_ROWS];
        assert_eq!(pointers(dto), ["/stops", ""]);
    }

    #[test]
    fn a_tenant_key_that_could_not_be_one_is_refused() {
        for key in ["", "BEHN GT", "BEHNGT'", "bühne", &"k".repeat(65)] {
            let mut dto = payload();
            dto.tenant_config.tenant_key = key.to_owned();
            assert_eq!(pointers(dto), ["/tenantConfig/tenantKey"], "{key:?}");
        }
    }

    #[test]
    fn at_most_ten_reasons_are_given() {
        let mut dto = payload();
        for stop in &mut dto.stops {
            stop.address.name.clear();
            stop.address.street.clear();
        }
        assert_eq!(pointers(dto).len(), 10);
    }
}
