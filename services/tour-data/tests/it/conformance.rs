//! Every combination of registered alternatives that compiles behaves the same, but for what its promise says.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tour_data::announce::Announce;
use tour_data::axis::Axis;
use tour_data::inserts::Inserts;
use tour_data::placement::Placement;
use tour_data::plan::{Config, Delivery, Promise, Spec};
use tour_data::touch::Touch;

use crate::audit::{Acknowledged, audit};
use crate::support::{Database, MessageTap, Posted, TourService, payload, tours_of};

fn specs<A: Axis + ?Sized>() -> impl Iterator<Item = &'static Spec> {
    A::registry().iter().map(|entry| entry.spec)
}

fn time(value: &Value) -> DateTime<Utc> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{value} is no time"))
}

#[tokio::test]
async fn every_combination_keeps_its_promise() {
    for inserts in specs::<dyn Inserts>() {
        for touch in specs::<dyn Touch>() {
            for announce in specs::<dyn Announce>() {
                for placement in specs::<dyn Placement>() {
                    eprintln!("{} {} {} {}", inserts.name, touch.name, announce.name, placement.name);
                    let settings = [
                        ("TOUR_DATA_INSERTS", inserts.name),
                        ("TOUR_DATA_TOUCH", touch.name),
                        ("TOUR_DATA_ANNOUNCE", announce.name),
                        ("TOUR_DATA_PLACEMENT", placement.name),
                    ];
                    conforms(&settings, touch, announce).await;
                }
            }
        }
    }
}

async fn conforms(settings: &[(&str, &str)], touch: &Spec, announce: &Spec) {
    let database = Database::create().await;
    let service = TourService::start(&database, settings).await;
    let mut tap = MessageTap::on(&service.names).await;
    let mut acknowledged = Vec::new();

    // A tour, and what readers see with the 201.
    let before = service.get("/api/v1/tenants/BEHNGT").await.1;
    let mut tour = payload();
    tour["tenantConfig"]["tenantInfo"] = json!("night shift");
    let first = create(&service, &tour, "first", &mut acknowledged).await;
    assert_eq!(first.body["rows"], 87);
    assert_eq!(first.body["tenantKey"], "BEHNGT");
    assert_eq!(first.body["tourNumber"], tour["tourNumber"]);
    let after = service.get("/api/v1/tenants/BEHNGT").await.1;
    let Some(Promise::Tenant { config, .. }) = touch.promise else {
        panic!("{} promises nothing", touch.name)
    };
    match config {
        Config::Exact => {
            assert_eq!(after["tenantInfo"], "night shift");
            assert!(time(&after["modifiedAt"]) >= acknowledged[0].sent_at);
        }
        Config::Unwritten => assert_eq!(after, before),
    }

    // Reading gives back what was sent, from the database and then from the cache.
    for _ in 0..2 {
        let (status, document) = service.get(&format!("/api/v1/tours/{}", first.id)).await;
        assert_eq!(status, StatusCode::OK, "{document}");
        for member in [
            "tourNumber",
            "tripNumber",
            "tourStatus",
            "tourDate",
            "vehicle",
            "driver",
            "stops",
        ] {
            assert_eq!(document[member], tour[member], "{member}");
        }
        assert_eq!(document["createdAt"], first.body["createdAt"]);
    }

    // The same request again, and another one under its key.
    let again = service.create(&tour, Some("first")).await;
    assert_eq!(
        (&again.body, again.replayed, first.replayed),
        (&first.body, true, false)
    );
    let mut other = tour.clone();
    other["tourNumber"] = json!("another");
    let reused = service.post(&other, Some("first")).send().await.expect("an answer");
    assert_eq!(reused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(tours_of(&database).await, 1);

    // One key from many clients at once, beside tours without one.
    let started = Utc::now();
    let (same, different) = futures::join!(
        join_all((0..6).map(|_| service.create(&other, Some("shared")))),
        join_all((0..4).map(|_| service.create(&tour, None))),
    );
    let acked_at = Utc::now();
    assert!(same.iter().all(|posted| posted.body == same[0].body));
    assert_eq!(same.iter().filter(|posted| !posted.replayed).count(), 1);
    assert_eq!(tours_of(&database).await, 6);
    let ack = |posted: &Posted, key: Option<&str>| Acknowledged {
        tour: posted.id,
        key: key.map(str::to_owned),
        rows: 87,
        sent_at: started,
        acked_at,
    };
    acknowledged.push(ack(&same[0], Some("shared")));
    acknowledged.extend(different.iter().map(|posted| ack(posted, None)));

    // Another tenant's token reaches nothing of this one, and writes nothing.
    let foreign = service.issuer.token(Some("NORDEX"), "tours:read tours:write");
    let refused = service
        .post(&tour, None)
        .bearer_auth(&foreign)
        .send()
        .await
        .expect("an answer");
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "two tokens are none");
    let refused = service
        .client
        .post(service.url("/api/v1/tours"))
        .bearer_auth(&foreign)
        .json(&tour);
    assert_eq!(refused.send().await.expect("an answer").status(), StatusCode::FORBIDDEN);
    for path in [
        &format!("/api/v1/tours/{}", first.id),
        "/api/v1/tours?tenant=BEHNGT",
        "/api/v1/tenants/BEHNGT",
    ] {
        assert_eq!(service.get_as(path, &foreign).await.0, StatusCode::FORBIDDEN, "{path}");
    }

    // Every message came, those of the repetitions as well, and nothing is amiss.
    let Some(Promise::Message {
        delivery: Delivery::AtLeastOnce,
        ..
    }) = announce.promise
    else {
        panic!("{} promises no message", announce.name)
    };
    let delivered = tap.messages(1 + 1 + 6 + 4).await.clone();
    assert_eq!(delivered[&first.id.to_string()], 2);
    let violations = audit(&database, &acknowledged, delivered, config == Config::Exact).await;
    assert_eq!(violations, [""; 0]);
    service.running.shutdown().await.expect("it drains");
}

async fn create(service: &TourService, tour: &Value, key: &str, acknowledged: &mut Vec<Acknowledged>) -> Posted {
    let sent_at = Utc::now();
    let posted = service.create(tour, Some(key)).await;
    let acked_at = Utc::now();
    acknowledged.push(Acknowledged {
        tour: posted.id,
        key: Some(key.to_owned()),
        rows: 87,
        sent_at,
        acked_at,
    });
    posted
}
