//! What becomes of a tour whose client does not wait for it.

use reqwest::{Response, StatusCode};
use serde_json::Value;
use sqlx::{Postgres, Transaction};

use crate::support::{Database, TourService, eventually, payload, tours_of};

const DEADLINE: &str = "rowlock-deadline-ms";

/// Sessions of the service that wait for a lock.
const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_database() AND wait_event_type = 'Lock'";

/// Holds the tenant's row until it is dropped.
async fn hold_the_row(database: &Database) -> Transaction<'static, Postgres> {
    let mut holder = database.pool.begin().await.expect("a session");
    sqlx::query("SELECT FROM tenant_config WHERE tenant_key = 'BEHNGT' FOR UPDATE")
        .execute(&mut *holder)
        .await
        .expect("the row is free");
    holder
}

async fn waits(database: &Database, sessions: i64) {
    eventually("a transaction waits for the row", async || {
        (database.number(WAITING).await == sessions).then_some(())
    })
    .await;
}

async fn exceeded(response: Response) {
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    let problem: Value = response.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:deadline-exceeded");
}

#[tokio::test]
async fn a_tour_that_was_begun_is_finished_and_found_by_the_retry() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    service.create(&payload(), None).await;

    let holder = hold_the_row(&database).await;
    let request = service.post(&payload(), Some("late")).header(DEADLINE, "3000");
    let (answer, ()) = tokio::join!(request.send(), waits(&database, 1));
    exceeded(answer.expect("an answer")).await;
    assert_eq!(database.number(WAITING).await, 1, "the transaction was not cut");
    holder.rollback().await.expect("the row is given back");
    // Or the retry could be ahead of it at the row.
    waits(&database, 0).await;
    let posted = service.create(&payload(), Some("late")).await;
    assert!(posted.replayed);
    assert_eq!(tours_of(&database).await, 2);
}

#[tokio::test]
async fn a_tour_that_got_no_connection_in_time_is_never_begun() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[("TOUR_DATA_DB_POOL_MAX", "1")]).await;
    service.create(&payload(), None).await;

    let holder = hold_the_row(&database).await;
    let first = tokio::spawn(service.post(&payload(), None).send());
    waits(&database, 1).await;
    let late = service.post(&payload(), Some("late")).header(DEADLINE, "300");
    exceeded(late.send().await.expect("an answer")).await;
    holder.rollback().await.expect("the row is given back");
    TourService::created(first.await.expect("no panic").expect("an answer")).await;
    // Whatever goes on without its client is over then.
    service.running.shutdown().await.expect("it drains");
    assert_eq!(tours_of(&database).await, 2);
}
