//! What clients see while a server is away, and that nothing is lost by it.

use std::time::{Duration, Instant};

use reqwest::StatusCode;
use serde_json::Value;

use crate::support::{Database, Link, MessageTap, Names, TourService, payload, server, tours_of};

#[tokio::test]
async fn a_tour_that_the_broker_did_not_confirm_is_kept_and_announced_by_the_retry() {
    let database = Database::create().await;
    let link = Link::to(Names::server_addr()).await;
    let url = Names::amqp().replace(&Names::server_addr(), &link.addr.to_string());
    let settings = [
        ("TOUR_DATA_AMQP_URL", url.as_str()),
        ("TOUR_DATA_PUBLISH_TIMEOUT", "300ms"),
    ];
    let service = TourService::start(&database, &settings).await;
    let mut tap = MessageTap::on(&service.names).await;

    link.cut();
    let refused = service.post(&payload(), Some("kept")).send().await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    let problem: Value = refused.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:not-announced");
    assert_eq!(tours_of(&database).await, 1);
    // Degraded, not unready: reads work.
    assert_eq!(service.readiness().await.0, StatusCode::OK);
    assert_eq!(service.get("/api/v1/tenants/BEHNGT").await.0, StatusCode::OK);

    link.restore();
    service.wait_for("rabbitmq").await;
    let posted = service.create(&payload(), Some("kept")).await;
    assert!(posted.replayed);
    assert_eq!(tours_of(&database).await, 1);
    assert!(tap.messages(1).await.contains_key(&posted.id.to_string()));
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_an_unknown_outcome_that_the_retry_resolves() {
    let database = Database::create().await;
    let link = Link::to(Database::server_addr()).await;
    let url = database.url_via(link.addr);
    let service = TourService::start(&database, &[("TOUR_DATA_DB_URL", &url)]).await;

    link.lose_answer_to("COMMIT");
    let unknown = service.post(&payload(), Some("lost")).send().await.expect("an answer");
    assert_eq!(unknown.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(unknown.headers().contains_key("retry-after"));
    let problem: Value = unknown.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:commit-unknown");

    let posted = service.create(&payload(), Some("lost")).await;
    assert!(posted.replayed, "PostgreSQL had committed");
    assert_eq!(tours_of(&database).await, 1);
}

#[tokio::test]
async fn a_connection_that_breaks_before_commit_writes_nothing_and_the_next_request_works() {
    let database = Database::create().await;
    let link = Link::to(Database::server_addr()).await;
    let url = database.url_via(link.addr);
    let service = TourService::start(&database, &[("TOUR_DATA_DB_URL", &url)]).await;
    service.create(&payload(), None).await;

    link.lose_answer_to(
        "UPDATE tenant_config SET modified_at=$1, tenant=$2, tenant_info=$3, tenant_key=$4 WHERE id=$5",
    );
    let broken = service.post(&payload(), Some("again")).send().await.expect("an answer");
    assert_eq!(broken.status(), StatusCode::SERVICE_UNAVAILABLE);
    let problem: Value = broken.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:database-unavailable");
    assert_eq!(tours_of(&database).await, 1);
    assert!(!service.create(&payload(), Some("again")).await.replayed);
}

#[tokio::test]
async fn sessions_that_the_server_ended_while_they_rested_cost_no_request() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let body = payload();
    // At once, so that the pool has several sessions.
    futures::future::join_all((0..4).map(|_| service.create(&body, None))).await;
    let ended: i64 = sqlx::query_scalar(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = current_database()",
    )
    .fetch_one(&database.pool)
    .await
    .expect("a superuser may");
    assert!(ended > 1, "{ended} sessions were ended");
    assert!(!service.create(&body, Some("after")).await.replayed);
    assert_eq!(service.get("/api/v1/tenants/BEHNGT").await.0, StatusCode::OK);
    assert_eq!(tours_of(&database).await, 5);
}

#[tokio::test]
async fn without_the_database_the_service_starts_is_unready_and_recovers() {
    let database = Database::create().await;
    let link = Link::to(Database::server_addr()).await;
    link.cut();
    let url = database.url_via(link.addr);
    let settings = [
        ("TOUR_DATA_DB_URL", url.as_str()),
        ("TOUR_DATA_DB_ACQUIRE_TIMEOUT", "300ms"),
    ];
    let service = TourService::start(&database, &settings).await;
    assert_eq!(service.readiness().await.0, StatusCode::SERVICE_UNAVAILABLE);
    let refused = service.post(&payload(), None).send().await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);

    link.restore();
    service.wait_for("postgresql").await;
    service.create(&payload(), None).await;
}

#[tokio::test]
async fn without_redis_reads_come_from_the_database() {
    let database = Database::create().await;
    let redis = server("ROWLOCK_TEST_REDIS");
    let addr = redis.trim_start_matches("redis://").trim_end_matches('/').to_owned();
    let link = Link::to(addr.clone()).await;
    let url = redis.replace(&addr, &link.addr.to_string());
    let service = TourService::start(&database, &[("TOUR_DATA_REDIS_URL", &url)]).await;
    let path = format!("/api/v1/tours/{}", service.create(&payload(), None).await.id);

    link.cut();
    let started = Instant::now();
    for _ in 0..20 {
        assert_eq!(service.get(&path).await.0, StatusCode::OK);
    }
    // Each read waiting for Redis' own bound of 2 s would take 40.
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let (status, report) = service.readiness().await;
    assert_eq!(status, StatusCode::OK, "{report:#}");
}
