//! Whatever a body holds: a 4xx that names the field, and no tour, whole or in part.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Database, TourService, payload};

/// Sends `body` as it is.
async fn send(service: &TourService, kind: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let request = service
        .client
        .post(service.url("/api/v1/tours"))
        .bearer_auth(service.token());
    let response = request
        .header("content-type", kind)
        .body(body)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

const ROWS: &str = "SELECT (SELECT count(*) FROM tour) + (SELECT count(*) FROM stop) + (SELECT count(*) FROM address) \
    + (SELECT count(*) FROM tour_order) + (SELECT count(*) FROM order_position)";

async fn nothing_was_written(database: &Database) {
    assert_eq!(database.number(ROWS).await, 0);
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_by_its_place() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let cases = [
        // Wrong types.
        ("/tourNumber", json!(7)),
        ("/tourNumber", json!(null)),
        ("/tourNumber", json!(["x"])),
        ("/stops", json!({})),
        ("/stops/2", json!("x")),
        ("/stops/3/orders/0/positions/1/quantity", json!("1")),
        ("/stops/3/orders/0/positions/1/quantity", json!(1.5)),
        ("/vehicle", json!([])),
        ("/stops/0/plannedArrival", json!("tomorrow")),
        ("/stops/0/plannedArrival", json!(1_700_000_000)),
        ("/tourDate", json!("2025-02-30")),
        // Empty and over-long.
        ("/tourNumber", json!("")),
        ("/tourNumber", json!("x".repeat(65))),
        ("/stops/4/address/city", json!("ü".repeat(201))),
        ("/tenantConfig/tenantInfo", json!("x".repeat(2001))),
        ("/stops/0/address/countryCode", json!("DEU")),
        ("/stops", json!([])),
        // What PostgreSQL cannot store.
        ("/tourNumber", json!("nul\0")),
        ("/driver/lastName", json!("nul\0")),
        ("/tenantConfig/tenant", json!("nul\0")),
        ("/stops/8/orders/0/positions/0/unit", json!("\0")),
        // Out of range.
        ("/stops/3/orders/0/positions/1/quantity", json!(0)),
        ("/stops/3/orders/0/positions/1/quantity", json!(-1)),
        ("/stops/3/orders/0/positions/1/quantity", json!(2_147_483_648_u64)),
        ("/stops/3/orders/0/positions/1/weightGrams", json!(u64::MAX)),
        ("/stops/8/address/longitudeE6", json!(180_000_001)),
        ("/stops/8/address/latitudeE6", json!(-90_000_001)),
        ("/stops/0/sequence", json!(0)),
        ("/stops/0/plannedDeparture", json!("+10000-01-01T00:00:00Z")),
        ("/stops/0/plannedDeparture", json!("0001-01-01T00:00:00Z")),
        ("/tourDate", json!("+262142-12-31")),
        ("/tourDate", json!("0000-01-01")),
        ("/tenantConfig/tenantKey", json!("")),
    ];
    for (pointer, value) in cases {
        let mut tour = payload();
        *tour.pointer_mut(pointer).expect("the payload has it") = value.clone();
        let (status, problem) = send(&service, "application/json", tour.to_string()).await;
        // A tenant key that differs from the token's is another tenant's, whatever it is.
        if pointer == "/tenantConfig/tenantKey" {
            assert_eq!(status, 403, "{problem}");
            continue;
        }
        assert_eq!(
            (status, &problem["pointer"]),
            (422, &json!(pointer)),
            "{value}: {problem}"
        );
    }
    nothing_was_written(&database).await;
}

#[tokio::test]
async fn members_that_are_missing_unknown_or_twice_are_named() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let text = payload().to_string();
    let mut missing = payload();
    let stop = missing
        .pointer_mut("/stops/1")
        .and_then(Value::as_object_mut)
        .expect("a stop");
    stop.remove("sequence");
    let mut misspelt = payload();
    misspelt["tourNumbr"] = json!("x");
    let twice = text.replacen('{', r#"{"tourNumber":"first","#, 1);
    let twice_by_another_spelling = text.replacen('{', r#"{"tour\u004eumber":"first","#, 1);
    let twice_inside = text.replacen(r#""vehicleNumber":"#, r#""vehicleNumber":"first","vehicleNumber":"#, 1);
    for (body, named) in [
        (missing.to_string(), "sequence"),
        (misspelt.to_string(), "tourNumbr"),
        (twice, "tourNumber"),
        (twice_by_another_spelling, "tourNumber"),
        (twice_inside, "vehicleNumber"),
    ] {
        let (status, problem) = send(&service, "application/json", body).await;
        assert_eq!(status, 422, "{problem}");
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains(named)),
            "{problem}"
        );
        assert!(problem["pointer"].is_string(), "{problem}");
    }
    nothing_was_written(&database).await;
}

#[tokio::test]
async fn lists_without_end_and_nesting_without_end_are_refused() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let mut many = payload();
    let stop = json!({
        "sequence": 1, "stopType": "UNLOADING", "plannedArrival": "2025-03-18T07:05:00Z",
        "plannedDeparture": "2025-03-18T07:40:00Z", "address": many["stops"][0]["address"], "orders": [],
    });
    many["stops"] = Value::from(vec![stop; 500]);
    let (status, problem) = send(&service, "application/json", many.to_string()).await;
    assert_eq!((status, &problem["pointer"]), (422, &json!("/stops")), "{problem}");

    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
    for (pointer, nested) in [
        ("/tourNumber", deep("[", "]")),
        ("/stops/0", deep("[", "]")),
        ("/vehicle", deep("[", "]")),
        ("/tenantConfig", deep(r#"{"tenant":"#, "}")),
    ] {
        let mut tour = payload();
        *tour.pointer_mut(pointer).expect("the payload has it") = json!("NESTED");
        let body = tour.to_string().replace(r#""NESTED""#, &nested);
        let (status, problem) = send(&service, "application/json", body).await;
        assert!(matches!(status, 400 | 413 | 422), "{pointer}: {problem}");
    }
    nothing_was_written(&database).await;
}

#[tokio::test]
async fn what_is_no_json_is_refused_where_it_ends_to_be_some() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let text = payload().to_string();
    let number = |value: &str| {
        text.replacen(
            r#""tourNumber":"BT-2025-0318-07""#,
            &format!(r#""tourNumber":{value}"#),
            1,
        )
    };
    for (body, pointer) in [
        (Vec::new(), ""),
        (text.as_bytes()[..text.len() - 1].to_vec(), ""),
        (format!("{text} x").into_bytes(), ""),
        // A surrogate by itself, the wrong half first, half of an escape.
        (number(r#""\ud800""#).into_bytes(), "/tourNumber"),
        (number(r#""\udc00\ud800""#).into_bytes(), "/tourNumber"),
        (number(r#""\ud83d\u12""#).into_bytes(), "/tourNumber"),
        // A number too large for any type, a control character, something that is no UTF-8.
        (number("1e999").into_bytes(), "/tourNumber"),
        (number("\"a\nb\"").into_bytes(), "/tourNumber"),
        (text.replacen("BT-2025", "BT\u{1}2025", 1).into_bytes(), "/tourNumber"),
        (
            [b"{\"tourNumber\":\"".as_slice(), b"\xff\xfe\"}"].concat(),
            "/tourNumber",
        ),
        (number("NaN").into_bytes(), "/tourNumber"),
        (b"\xef\xbb\xbf{}".to_vec(), ""),
    ] {
        let shown = String::from_utf8_lossy(&body).chars().take(60).collect::<String>();
        let (status, problem) = send(&service, "application/json", body).await;
        assert_eq!(status, 400, "{shown}: {problem}");
        assert_eq!(
            problem["type"], "urn:rowlock:problem:malformed-json",
            "{shown}: {problem}"
        );
        let found = problem["pointer"].as_str().expect("a pointer");
        assert!(found.starts_with(pointer), "{shown}: {problem}");
    }
    nothing_was_written(&database).await;
}

#[tokio::test]
async fn bodies_that_are_no_tour_at_all_are_refused() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let text = payload().to_string();
    for body in ["[1]", "1", "null", "\"tour\"", "{}"] {
        assert_eq!(send(&service, "application/json", body).await.0, 422, "{body}");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "json",
        "",
    ] {
        assert_eq!(send(&service, kind, text.clone()).await.0, 415, "{kind:?}");
    }
    let (status, problem) = send(&service, "application/json", text + &" ".repeat(300_000)).await;
    assert_eq!(
        (status, &problem["type"]),
        (413, &json!("urn:rowlock:problem:body-too-large"))
    );
    for key in ["two words", "", &"k".repeat(201)] {
        let response = service.post(&payload(), Some(key)).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{key:?}");
    }
    nothing_was_written(&database).await;
}
