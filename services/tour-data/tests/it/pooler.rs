//! Behind a pooler in transaction mode: a PgBouncer that has fewer sessions than the service has connections to it.

use chassis::service::Service as _;
use futures::future::join_all;
use reqwest::StatusCode;
use tour_data::TourData;

use crate::support::{
    Database, Link, PgBouncer, TourService, config, eventually, payload, server, tours_of, variables,
};

const SESSIONS: u16 = 2;
const WITHOUT_NAMES: (&str, &str) = ("TOUR_DATA_DB_PREPARED", "false");

#[tokio::test]
async fn tours_are_made_and_read_over_fewer_sessions_than_there_are_connections() {
    let (database, pooler) = (Database::create().await, PgBouncer::start(SESSIONS).await);
    let url = database.url_via(pooler.addr);
    let settings = [
        ("TOUR_DATA_DB_URL", url.as_str()),
        ("TOUR_DATA_DB_POOL_MAX", "8"),
        ("TOUR_DATA_TOUCH", "update-last"),
        ("TOUR_DATA_ANNOUNCE", "outbox"),
        WITHOUT_NAMES,
    ];
    let service = TourService::start(&database, &settings).await;
    let tour = payload();
    let clients = (0..8).map(async |client| {
        let key = format!("client-{client}");
        let posted = service.create(&tour, Some(&key)).await;
        let (status, found) = service.get(&format!("/api/v1/tours/{}", posted.id)).await;
        assert_eq!((status, &found["id"]), (StatusCode::OK, &posted.body["id"]), "{found}");
        assert_eq!(service.get("/api/v1/tenants/BEHNGT").await.0, StatusCode::OK);
        let again = service.create(&tour, Some(&key)).await;
        assert!(again.replayed && again.id == posted.id, "{again:?}");
    });
    join_all(clients).await;
    assert_eq!(tours_of(&database).await, 8);
    for (table, rows) in [("stop", 9), ("address", 26), ("tour_order", 17), ("order_position", 34)] {
        let count = format!("SELECT count(*) FROM {table}");
        assert_eq!(database.number(&count).await, 8 * rows, "{table}");
    }
    eventually("the relay has published all messages", async || {
        (database.number("SELECT count(*) FROM outbox").await == 0).then_some(())
    })
    .await;
    let sessions = database
        .number(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'test' \
             AND backend_type = 'client backend'",
        )
        .await;
    assert!((1..=i64::from(SESSIONS)).contains(&sessions), "{sessions} sessions");
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn a_service_whose_statements_have_names_is_not_ready_behind_it_and_says_why() {
    let (database, pooler) = (Database::create().await, PgBouncer::start(SESSIONS).await);
    let url = database.url_via(pooler.addr);
    let service = TourService::start(&database, &[("TOUR_DATA_DB_URL", &url)]).await;
    let (status, report) = service.readiness().await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{report}");
    let dependencies = report["dependencies"].as_array().expect("a list");
    let postgres = dependencies.iter().find(|one| one["name"] == "postgresql");
    let why = postgres.and_then(|one| one["error"].as_str()).expect("it says why");
    assert!(why.contains("pooler") && why.contains("DB_PREPARED=false"), "{why}");
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn migrations_that_would_go_through_it_are_refused() {
    let (redis, amqp) = ("redis://127.0.0.1:1", "amqp://127.0.0.1:1/%2f");
    let url = format!("{}/none", server("ROWLOCK_TEST_POSTGRES"));
    let config = config(&variables(&url, redis, amqp, &[WITHOUT_NAMES]));
    let refused = TourData::migrate(config).await.expect_err("it is refused").to_string();
    assert!(refused.contains("DB_PREPARED=true"), "{refused}");
}

#[tokio::test]
async fn without_names_every_statement_is_in_a_transaction_that_keeps_its_session() {
    for inserts in ["per-row", "single-statement", "pipelined"] {
        let database = Database::create().await;
        let link = Link::to(Database::server_addr()).await;
        let url = database.url_via(link.addr);
        let settings = [
            ("TOUR_DATA_DB_URL", url.as_str()),
            ("TOUR_DATA_DB_POOL_MAX", "1"),
            ("TOUR_DATA_TOUCH", "update-last"),
            ("TOUR_DATA_INSERTS", inserts),
            WITHOUT_NAMES,
        ];
        let service = TourService::start(&database, &settings).await;
        let posted = service.create(&payload(), None).await;
        let tour = format!("/api/v1/tours/{}", posted.id);
        for path in [tour.as_str(), "/api/v1/tours?tenant=BEHNGT", "/api/v1/tenants/BEHNGT"] {
            assert_eq!(service.get(path).await.0, StatusCode::OK, "{path}");
        }
        let mut open = false;
        for sent in link.take_sent() {
            assert!(!sent.named, "{inserts}: {} has a name", sent.sql);
            match sent.sql.as_str() {
                "COMMIT" | "ROLLBACK" => open = false,
                begin if begin.starts_with("BEGIN") => {
                    assert!(
                        begin.contains("SET LOCAL idle_in_transaction_session_timeout"),
                        "{begin}"
                    );
                    open = true;
                }
                statement => assert!(open, "{inserts}: {statement} is outside of a transaction"),
            }
        }
        service.running.shutdown().await.expect("it drains");
    }
}
