//! What single fixes are there for: who waits for the row and who does not, what replicas hear of each other, what is left
//! when a service stops.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tour_data::announce::Announce;
use tour_data::inserts::Inserts;
use tour_data::plan::{Alternatives, Clock, CreateError, Isolation};
use tour_data::touch::Touch;

use crate::support::{Database, Rig, TourService, eventually, make, new_tour, payload, tours_of};

fn alternatives(inserts: &str, touch: &str) -> Alternatives {
    Alternatives {
        inserts: make::<dyn Inserts>(inserts)(),
        touch: make::<dyn Touch>(touch)(),
        announce: make::<dyn Announce>("after-commit")(),
    }
}

async fn session(database: &Database) -> PgConnection {
    PgConnection::connect(&database.url())
        .await
        .expect("the database answers")
}

/// The shipped payload for another tenant, with the configuration that the tenant has.
fn unchanged(tenant: &str) -> Value {
    let mut tour = payload();
    tour["tenantConfig"] = json!({"tenant": "for a test", "tenantKey": tenant, "tenantInfo": null});
    tour
}

#[tokio::test]
async fn a_tour_that_changes_nothing_waits_for_the_row_only_where_its_touch_says_so() {
    let never = [
        "skip-unchanged",
        "cached",
        "cached-redis",
        "write-behind",
        "slots",
        "append-fold",
        "queue",
        "derive-on-read",
        "none",
    ];
    let always = [
        "update-first",
        "select-for-update-first",
        "update-last",
        "deferred-trigger",
        "upsert-unchanged",
        "throttled",
        "throttled-skip-locked",
        "advisory-lock",
        "nowait-retry",
        "after-commit",
    ];
    let rig = Rig::start().await;
    let tenants = rig.tenants(never.len() + always.len()).await;
    let mut holder = session(&rig.database).await;
    let hold = "BEGIN; UPDATE tenant_config SET tenant_info = NULL WHERE id > 1000";
    holder.execute(hold).await.expect("held");
    let ways = never
        .map(|touch| (touch, false))
        .into_iter()
        .chain(always.map(|touch| (touch, true)));
    let runs = ways.zip(&tenants).map(async |((touch, waits), tenant)| {
        let running = rig
            .run(alternatives("multi-row", touch), "single", Isolation::ReadCommitted)
            .expect("it compiles");
        let mut tour = std::pin::pin!(running.plan.create(new_tour(unchanged(tenant), None)));
        if waits {
            // Long enough for a tour on a machine that is not too busy; on one that is, this sees less and fails nobody.
            let early = tokio::time::timeout(Duration::from_millis(700), &mut tour).await;
            assert!(early.is_err(), "{touch} does not wait");
        } else {
            let done = tokio::time::timeout(Duration::from_secs(30), &mut tour).await;
            done.unwrap_or_else(|_| panic!("{touch} waits")).expect("it is created");
        }
    });
    stream::iter(runs).buffer_unordered(6).collect::<Vec<()>>().await;
    holder.execute("ROLLBACK").await.expect("let go");
}

/// A touch that is left to whoever holds the row is as old as the last one that was written: too old after a pause.
#[tokio::test]
async fn a_touch_is_left_to_the_holder_of_the_row_only_while_the_last_one_is_young_enough() {
    // The tenants were touched when the year began.
    let due: Clock = || "2025-01-01T00:00:01.5Z".parse().expect("a time");
    let overdue: Clock = || "2025-01-01T00:00:02.5Z".parse().expect("a time");
    let rig = Rig::start().await;
    let tenants = rig.tenants(2).await;
    let mut holder = session(&rig.database).await;
    let hold = "BEGIN; UPDATE tenant_config SET tenant_info = NULL WHERE id > 1000";
    holder.execute(hold).await.expect("held");
    let touch = || alternatives("multi-row", "throttled-skip-locked");

    let running = rig.run_by(due, touch()).expect("it compiles");
    let tour = running.plan.create(new_tour(unchanged(&tenants[0]), None));
    let created = tokio::time::timeout(Duration::from_secs(30), tour).await;
    created.expect("it waits for nobody").expect("it is created");

    let running = rig.run_by(overdue, touch()).expect("it compiles");
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut holder)
        .await
        .expect("a pid");
    let (created, ()) = futures::join!(running.plan.create(new_tour(unchanged(&tenants[1]), None)), async {
        let waits = format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
        eventually("the tour waits for the holder", async || {
            (rig.database.number(&waits).await == 1).then_some(())
        })
        .await;
        holder.execute("ROLLBACK").await.expect("let go");
    });
    created.expect("it is created");
    let touched = "SELECT count(*) FROM tenant_config WHERE id > 1000 AND modified_at = '2025-01-01T00:00:02.5Z'";
    assert_eq!(
        rig.database.number(touched).await,
        1,
        "the holder has left the touch to it"
    );
}

/// The other replicas may skip a change back to what Redis still holds, so it must not hold that any more.
#[tokio::test]
async fn a_change_that_redis_cannot_be_told_is_acknowledged_when_its_key_has_expired() {
    let database = Database::create().await;
    let settings = [
        ("TOUR_DATA_TOUCH", "cached-redis"),
        ("TOUR_DATA_REDIS_URL", "redis://127.0.0.1:1"),
    ];
    let service = TourService::start(&database, &settings).await;
    let mut changed = payload();
    changed["tenantConfig"]["tenantInfo"] = json!("changed");
    let sent = Instant::now();
    service.create(&changed, None).await;
    assert!(sent.elapsed() >= Duration::from_millis(1_200), "{:?}", sent.elapsed());
    service.running.shutdown().await.expect("it drains");
}

/// PostgreSQL runs the parts of a statement in no promised order, and left alone it locks the row first.
#[tokio::test]
async fn in_one_statement_update_last_locks_the_row_after_the_inserts() {
    let rig = Rig::start().await;
    for (inserts, tenant) in ["single-statement", "function"].into_iter().zip(rig.tenants(2).await) {
        let running = rig
            .run(alternatives(inserts, "update-last"), "single", Isolation::ReadCommitted)
            .expect("it compiles");
        // Prepared, with the plan that it keeps.
        for _ in 0..6 {
            running
                .plan
                .create(new_tour(unchanged(&tenant), None))
                .await
                .expect("it is created");
        }
        let mut holder = session(&rig.database).await;
        // Another tour under the same key, not committed: the INSERT of ours has to wait for it.
        let rival = format!(
            "BEGIN; INSERT INTO tour SELECT gen_random_uuid(), tenant_config_id, tour_number, trip_number, tour_status, \
             tour_date, vehicle_number, license_plate, vehicle_type, driver_number, driver_first_name, driver_last_name, \
             driver_phone, 'rival', request_digest, created_at \
             FROM tour WHERE tenant_config_id = (SELECT id FROM tenant_config WHERE tenant_key = '{tenant}') LIMIT 1"
        );
        holder.execute(AssertSqlSafe(rival)).await.expect("held");
        let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut holder)
            .await
            .expect("a pid");
        let row = format!("SELECT id FROM tenant_config WHERE tenant_key = '{tenant}' FOR UPDATE NOWAIT");
        let (created, ()) = futures::join!(
            running.plan.create(new_tour(unchanged(&tenant), Some("rival"))),
            async {
                let waits = format!("SELECT count(*) FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))");
                eventually("the tour waits in its inserts", async || {
                    (rig.database.number(&waits).await == 1).then_some(())
                })
                .await;
                let free = sqlx::query(AssertSqlSafe(row.clone()))
                    .execute(&rig.database.pool)
                    .await;
                free.unwrap_or_else(|error| panic!("{inserts} has locked the row before it inserted: {error}"));
                holder.execute("ROLLBACK").await.expect("let go");
            }
        );
        assert!(!created.expect("it is created").replayed);
    }
}

#[tokio::test]
async fn what_is_kept_in_memory_is_written_when_the_service_stops() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", "write-behind")]).await;
    let mut tour = payload();
    tour["tenantConfig"]["tenantInfo"] = json!("the last words");
    service.create(&tour, None).await;
    service.running.shutdown().await.expect("it drains");
    let written = "SELECT count(*) FROM tenant_config WHERE tenant_key = 'BEHNGT' AND tenant_info = 'the last words'";
    assert_eq!(database.number(written).await, 1);
}

#[tokio::test]
async fn a_replica_forgets_what_another_one_has_changed() {
    for touch in ["cached", "cached-redis"] {
        let database = Database::create().await;
        let settings = [("TOUR_DATA_TOUCH", touch)];
        let (one, other) = futures::join!(
            TourService::start(&database, &settings),
            TourService::start(&database, &settings)
        );
        let mut early = payload();
        early["tenantConfig"]["tenantInfo"] = json!("early");
        let mut late = payload();
        late["tenantConfig"]["tenantInfo"] = json!("late");
        let info = async |service: &TourService| service.get("/api/v1/tenants/BEHNGT").await.1["tenantInfo"].clone();
        // Both know "early" now.
        for service in [&one, &other, &one, &other] {
            service.create(&early, None).await;
        }
        one.create(&late, None).await;
        assert_eq!(info(&other).await, "late");
        // The other one has to find out that this is a change; how soon is in the promise.
        eventually("the change back is written", async || {
            other.create(&early, None).await;
            (info(&one).await == "early").then_some(())
        })
        .await;
        for service in [one, other] {
            service.running.shutdown().await.expect("it drains");
        }
    }
}

/// As if the connection on which a replica listens had gone dead without a word.
#[tokio::test]
async fn a_change_that_nobody_tells_of_is_found_out_in_time() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", "cached")]).await;
    let mut early = payload();
    early["tenantConfig"]["tenantInfo"] = json!("early");
    for _ in 0..2 {
        service.create(&early, None).await;
    }
    let unheard = "UPDATE tenant_config SET tenant_info = 'unheard' WHERE tenant_key = 'BEHNGT'";
    sqlx::query(unheard).execute(&database.pool).await.expect("changed");
    eventually("the change back is written", async || {
        service.create(&early, None).await;
        let written = "SELECT count(*) FROM tenant_config WHERE tenant_key = 'BEHNGT' AND tenant_info = 'early'";
        (database.number(written).await == 1).then_some(())
    })
    .await;
    service.running.shutdown().await.expect("it drains");
}

#[tokio::test]
async fn a_tour_that_changes_nothing_sends_nothing_to_the_tenant_row_where_it_is_cached() {
    for touch in ["cached", "cached-redis"] {
        let database = Database::create().await;
        let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", touch)]).await;
        let version = "SELECT xmin::text::bigint FROM tenant_config WHERE tenant_key = 'BEHNGT'";
        let before = database.number(version).await;
        for _ in 0..3 {
            service.create(&payload(), None).await;
        }
        assert_eq!(database.number(version).await, before, "{touch}");
        let mut changed = payload();
        changed["tenantConfig"]["tenantInfo"] = json!("changed");
        service.create(&changed, None).await;
        assert_ne!(database.number(version).await, before, "{touch}");
        service.running.shutdown().await.expect("it drains");
    }
}

/// Above READ COMMITTED a tour whose snapshot is older than the last change of the row is rolled back and run again: it
/// either gets through within its attempts, or says that others came first every time. Nothing is written twice.
#[tokio::test]
async fn above_read_committed_tours_get_through_or_are_refused_after_bounded_attempts() {
    let rig = Rig::start().await;
    let mut tenants = rig.tenants(8).await.into_iter();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for inserts in ["multi-row", "single-statement", "pipelined", "copy"] {
            let tenant = tenants.next().expect("there are enough");
            let running = rig
                .run(alternatives(inserts, "update-last"), "single", isolation)
                .expect("it compiles");
            let before = tours_of(&rig.database).await;
            let tours = (0..8).map(|_| running.plan.create(new_tour(unchanged(&tenant), None)));
            let mut created = 0;
            for outcome in join_all(tours).await {
                match outcome {
                    Ok(done) => {
                        assert_eq!(done.rows, 87);
                        created += 1;
                    }
                    Err(CreateError::Contended(state)) => assert_eq!(state, "40001"),
                    Err(error) => panic!("{inserts}, {isolation:?}: {error}"),
                }
            }
            assert!(created > 0, "{inserts}, {isolation:?}");
            assert_eq!(tours_of(&rig.database).await, before + created);
        }
    }
}
