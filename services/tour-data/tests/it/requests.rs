//! Bad input, rights, pages: what the API answers.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Database, TourService, payload, tours_of};

/// Status and problem of a POST.
async fn refused(service: &TourService, tour: &Value) -> (u16, Value) {
    let response = service.post(tour, None).send().await.expect("an answer");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

#[tokio::test]
async fn invalid_tours_are_refused_by_the_field_and_nothing_is_written() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let cases = [
        ("/tourNumber", json!("")),
        ("/tourNumber", json!("x".repeat(65))),
        ("/tourNumber", json!(7)),
        ("/driver/lastName", json!("nul\0")),
        ("/stops", json!([])),
        ("/stops/3/orders/0/positions/1/quantity", json!(0)),
        ("/stops/8/address/longitudeE6", json!(180_000_001)),
        ("/stops/0/plannedArrival", json!("tomorrow")),
    ];
    for (pointer, value) in cases {
        let mut tour = payload();
        *tour.pointer_mut(pointer).expect("the payload has it") = value;
        let (status, problem) = refused(&service, &tour).await;
        assert_eq!((status, &problem["pointer"]), (422, &json!(pointer)), "{problem}");
    }
    let mut misspelt = payload();
    misspelt["tourNumbr"] = json!("x");
    assert_eq!(refused(&service, &misspelt).await.0, 422);
    assert_eq!(tours_of(&database).await, 0);
}

#[tokio::test]
async fn bodies_that_are_no_tour_at_all_are_refused() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let text = payload().to_string();
    let send = async |kind: &str, body: String| {
        let request = service
            .client
            .post(service.url("/api/v1/tours"))
            .bearer_auth(service.token());
        request
            .header("content-type", kind)
            .body(body)
            .send()
            .await
            .expect("an answer")
            .status()
            .as_u16()
    };
    assert_eq!(send("application/json", String::new()).await, 400);
    assert_eq!(send("application/json", text[..text.len() - 1].to_owned()).await, 400);
    assert_eq!(send("application/json", "[1]".to_owned()).await, 422);
    assert_eq!(send("text/plain", text.clone()).await, 415);
    assert_eq!(send("application/json", text + &" ".repeat(300_000)).await, 413);
    let two_words = service
        .post(&payload(), Some("two words"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(two_words.status(), StatusCode::BAD_REQUEST);
    assert_eq!(tours_of(&database).await, 0);
}

#[tokio::test]
async fn scope_and_tenant_of_the_token_decide() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let post = async |token: String, key: &str| {
        let mut tour = payload();
        tour["tenantConfig"]["tenantKey"] = json!(key);
        let request = service
            .client
            .post(service.url("/api/v1/tours"))
            .bearer_auth(token)
            .json(&tour);
        request.send().await.expect("an answer").status().as_u16()
    };
    let issuer = &service.issuer;
    assert_eq!(post(issuer.token(Some("BEHNGT"), "tours:read"), "BEHNGT").await, 403);
    assert_eq!(post(issuer.token(None, "tours:write"), "BEHNGT").await, 403);
    assert_eq!(post(issuer.token(Some("NORDEX"), "tours:write"), "BEHNGT").await, 403);
    assert_eq!(post(issuer.token(Some("NOBODY"), "tours:write"), "NOBODY").await, 422);
    assert_eq!(post(issuer.token(Some("NORDEX"), "tours:write"), "NORDEX").await, 201);
    assert_eq!(post("not a token".to_owned(), "BEHNGT").await, 401);
    let writer = issuer.token(Some("BEHNGT"), "tours:write");
    assert_eq!(
        service.get_as("/api/v1/tenants/BEHNGT", &writer).await.0,
        StatusCode::FORBIDDEN
    );
    let nobody = issuer.token(Some("NOBODY"), "tours:read");
    assert_eq!(
        service.get_as("/api/v1/tenants/NOBODY", &nobody).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_tenant_that_was_added_later_is_found() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    service.create(&payload(), None).await;
    let add = "INSERT INTO tenant_config VALUES (41, 'New', 'NEWCOMER', NULL, now())";
    sqlx::raw_sql(add)
        .execute(&database.pool)
        .await
        .expect("the tenant is added");
    let token = service.issuer.token(Some("NEWCOMER"), "tours:read");
    // The directory is read at most once a second.
    let config = crate::support::eventually("the tenant is known", async || {
        let (status, config) = service.get_as("/api/v1/tenants/NEWCOMER", &token).await;
        (status == StatusCode::OK).then_some(config)
    })
    .await;
    assert_eq!(config["tenant"], "New");
}

#[tokio::test]
async fn unknown_tours_and_routes_are_not_found() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    for path in [
        "/api/v1/tours/0190b6f4-0000-7000-8000-000000000001",
        "/api/v1/tours/not-an-id",
        "/api/v2",
    ] {
        let (status, problem) = service.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {problem}");
    }
}

#[tokio::test]
async fn pages_show_every_tour_once_and_the_newest_first() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let mut created = Vec::new();
    for _ in 0..7 {
        created.push(service.create(&payload(), None).await.id.to_string());
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/tours?tenant=BEHNGT&limit=3".to_owned();
    let mut sizes = Vec::new();
    loop {
        let (status, page) = service.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let tours = page["tours"].as_array().expect("a list");
        sizes.push(tours.len());
        seen.extend(tours.iter().map(|tour| tour["id"].as_str().expect("an id").to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/tours?tenant=BEHNGT&limit=3&after={next}");
        // A tour that comes meanwhile belongs before the pages that are left.
        service.create(&payload(), None).await;
    }
    created.reverse();
    assert_eq!((seen, sizes), (created, vec![3, 3, 1]));

    for query in [
        "",
        "?tenant=BEHNGT&limit=0",
        "?tenant=BEHNGT&limit=101",
        "?tenant=BEHNGT&after=x",
        "?tenant=BEHNGT&x=1",
    ] {
        assert_eq!(
            service.get(&format!("/api/v1/tours{query}")).await.0,
            StatusCode::BAD_REQUEST,
            "{query:?}"
        );
    }
}

#[tokio::test]
async fn what_is_counted_is_on_the_admin_port() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    service.create(&payload(), None).await;
    let expected = [
        "tour_create_duration",
        "tour_transaction_duration",
        "tour_statements",
        "db_client_operation_duration",
        "tour_messages_consumed",
    ];
    crate::support::eventually("all metrics are there", async || {
        let url = format!("http://{}/metrics", service.running.admin_addr);
        let text = service
            .client
            .get(url)
            .send()
            .await
            .expect("an answer")
            .text()
            .await
            .expect("text");
        let names: BTreeSet<&str> = expected.into_iter().filter(|name| text.contains(name)).collect();
        (names.len() == expected.len()).then_some(())
    })
    .await;
}
