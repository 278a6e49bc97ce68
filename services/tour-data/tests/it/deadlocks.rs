//! Two tours that wait for each other: made by a foreign key and a unique index, and by nothing else than the order of locks.

use reqwest::StatusCode;
use serde_json::Value;
use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::support::{Database, TourService, eventually, payload, tours_of};

const CHANGES: [&str; 2] = [
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../migrations/tour-data/changes/tour-foreign-key.sql"
    )),
    include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../migrations/tour-data/changes/tenant-info-index.sql"
    )),
];

/// A tour that changes the configuration of its tenant.
fn changing(info: &str) -> Value {
    let mut tour = payload();
    tour["tenantConfig"]["tenantInfo"] = info.into();
    tour
}

/// Two tours of which each has done as much as it can before either is finished; both are acknowledged. Gives how many deadlocks
/// that took.
async fn deadlocks_of_two(touch: &str) -> i64 {
    let database = Database::create().await;
    for change in CHANGES {
        let made = sqlx::raw_sql(change).execute(&database.pool).await;
        made.expect("the schema change is made");
    }
    let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", touch)]).await;
    // The last of the tables that a tour fills, but for the one that is filled first: nobody gets past it.
    let mut gate = PgConnection::connect(&database.url())
        .await
        .expect("the database answers");
    gate.execute("BEGIN; LOCK TABLE order_position IN SHARE MODE")
        .await
        .expect("held");
    let (first, second) = (changing("first"), changing("second"));
    let ((), first, second) = futures::join!(
        async {
            eventually("both tours wait", async || {
                let waiting = "SELECT count(*) FROM pg_stat_activity \
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
                (database.number(waiting).await == 2).then_some(())
            })
            .await;
            gate.execute("COMMIT").await.expect("let go");
        },
        service.post(&first, Some("first")).send(),
        service.post(&second, Some("second")).send(),
    );
    for answer in [first, second] {
        TourService::created(answer.expect("an answer")).await;
    }
    assert_eq!(tours_of(&database).await, 2);
    assert_eq!(database.number("SELECT count(*) FROM order_position").await, 2 * 34);
    let changed = "SELECT count(*) FROM tenant_config WHERE tenant_info IN ('first', 'second')";
    assert_eq!(database.number(changed).await, 1);
    // Sessions report their counts at the latest when they end, and a pool that is drained keeps its own.
    service.running.shutdown().await.expect("it drains");
    eventually("the service's sessions have ended", async || {
        let left = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = '{}'",
            database.name
        );
        (database.number(&left).await == 0).then_some(())
    })
    .await;
    database
        .number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        .await
}

#[tokio::test]
async fn tours_that_take_the_weak_lock_first_deadlock_and_the_one_that_is_rolled_back_is_run_again() {
    assert!(deadlocks_of_two("update-last").await >= 1);
}

#[tokio::test]
async fn with_the_strongest_lock_first_there_is_no_deadlock() {
    for touch in ["update-first", "select-for-update-first"] {
        assert_eq!(deadlocks_of_two(touch).await, 0, "{touch}");
    }
}

#[tokio::test]
async fn a_tour_that_deadlocks_every_time_is_answered_with_503_and_has_written_nothing() {
    let database = Database::create().await;
    // Whoever inserts a tour is rolled back as the victim of a deadlock would be.
    let victim = "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$;
        CREATE TRIGGER lose BEFORE INSERT ON tour FOR EACH ROW EXECUTE FUNCTION lose();";
    let made = sqlx::raw_sql(victim).execute(&database.pool).await;
    made.expect("the trigger is made");
    let service = TourService::start(&database, &[]).await;
    let answer = service.post(&payload(), Some("key")).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key("retry-after"));
    let problem: Value = answer.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:contended");
    assert_eq!(tours_of(&database).await, 0);
    let lifted = sqlx::raw_sql("DROP TRIGGER lose ON tour").execute(&database.pool).await;
    lifted.expect("the trigger is gone");
    service.create(&payload(), Some("key")).await;
    assert_eq!(tours_of(&database).await, 1);
}
