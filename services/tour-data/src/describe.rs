//! What tour-data adds to `--describe`: the alternatives with their promises, the audit, where messages go.

use serde_json::{Value, json};

use crate::announce::{Announce, TOUR_CREATED};
use crate::axis::{Axis, Entry};
use crate::config::{QUEUE, TOUCH_QUEUE};
use crate::inserts::Inserts;
use crate::placement::Placement;
use crate::touch::Touch;

/// Name, and what holds if the file's query returns no row. Paths are relative to the checkout.
const AUDIT: [(&str, &str); 9] = [
    ("rows-per-tour", "every tour has exactly the rows of the payload"),
    (
        "lost-acknowledged",
        "every acknowledged tour exists, but for what the server may lose in a crash as declared",
    ),
    (
        "acknowledged-present",
        "every acknowledged tour has its key and the rows it was answered with",
    ),
    (
        "tour-of-its-tenant",
        "every acknowledged tour belongs to the tenant that it was created for",
    ),
    (
        "tenant-in-one-place",
        "a tenant's row and its tours lie in one schema, the one that the directory says",
    ),
    ("one-tour-per-key", "a repeated idempotency key makes one tour"),
    (
        "no-message-without-tour",
        "no message announces a tour that does not exist",
    ),
    (
        "message-per-acknowledged",
        "every acknowledged tour was announced, but for what the announcement may lose in a fault as declared",
    ),
    (
        "exact-tenant-config",
        "the tenant row was last written by one of the last tours",
    ),
];

pub(crate) fn describe() -> Value {
    let alternatives = [
        axis::<dyn Inserts>(),
        axis::<dyn Touch>(),
        axis::<dyn Announce>(),
        axis::<dyn Placement>(),
    ]
    .concat();
    let audit = AUDIT.map(
        |(name, says)| json!({"name": name, "path": format!("services/tour-data/audit/{name}.sql"), "says": says}),
    );
    json!({
        "alternatives": alternatives,
        // What decides what the migrations make, and whom they make.
        "schema_settings": ["TOUR_DATA_SHARDS"],
        "tenants": tenants(),
        "audit": audit,
        "database": "tour_data",
        // The row that every tour of a tenant writes: whoever holds its lock holds up the others.
        "hot": {"relation": "tenant_config"},
        "queues": queues(),
        "messages": {
            "exchange": "tour.events",
            "routing_key": TOUR_CREATED,
            "queue": QUEUE,
            "id": "message_id = tour id",
            "delivery": "at-least-once",
        },
    })
}

/// Every queue that the service declares; those of a touch with its name, since they are there with it alone.
fn queues() -> Vec<Value> {
    let touches = <dyn Touch>::registry().iter().flat_map(|entry| {
        let name = entry.spec.name;
        let queues = (entry.make)().queues(TOUCH_QUEUE);
        queues
            .into_iter()
            .map(move |queue| json!({"name": queue.name, "for": {"axis": "touch", "name": name}}))
    });
    [json!({"name": QUEUE})].into_iter().chain(touches).collect()
}

fn axis<A: Axis + ?Sized>() -> Vec<Value> {
    let describe = |entry: &Entry<A>| {
        let mut described = json!({"axis": A::NAME, "gives_up": entry.gives_up, "not_for": entry.not_for});
        if let (Value::Object(described), Value::Object(spec)) = (&mut described, json!(entry.spec)) {
            described.extend(spec);
        }
        described
    };
    A::registry().iter().map(describe).collect()
}

/// Keys of the tenants that the migrations make, in the order of their ids.
fn tenants() -> Vec<String> {
    let key = |id: u32| match id {
        7 => "BEHNGT".to_owned(),
        23 => "NORDEX".to_owned(),
        _ => format!("TENANT{id:02}"),
    };
    (1..=40).map(key).collect()
}
