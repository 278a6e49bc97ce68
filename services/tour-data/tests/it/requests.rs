//! Rights, pages, ids: what the API answers.

use std::collections::BTreeSet;

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{Database, TourService, payload};

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
        "/api/v1/tours/%00",
        "/api/v1/tours/0190b6f4-0000-7000-8000-000000000001%00",
        "/api/v2",
    ] {
        let (status, problem) = service.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {problem}");
    }
}

#[tokio::test]
async fn ids_and_parameters_that_cannot_be_read_are_refused() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    for (path, expected) in [
        ("/api/v1/tours/%ff", 400),
        ("/api/v1/tenants/%ff", 400),
        ("/api/v1/tenants/BEHN%00GT", 403),
        ("/api/v1/tenants/behngt", 403),
        ("/api/v1/tours?tenant=%00", 403),
        ("/api/v1/tours?tenant=BEHNGT&tenant=BEHNGT", 400),
        ("/api/v1/tours?tenant=BEHNGT&limit=-1", 400),
        ("/api/v1/tours?tenant=BEHNGT&limit=99999999999999999999", 400),
        ("/api/v1/tours?tenant=BEHNGT&after=%00", 400),
        ("/api/v1/tours?tenant=BEHNGT&after=", 400),
    ] {
        let (status, problem) = service.get(path).await;
        assert_eq!(status.as_u16(), expected, "{path}: {problem}");
        assert!(problem["type"].is_string(), "{path}: {problem}");
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
