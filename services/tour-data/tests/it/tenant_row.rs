//! What the touches do to the tenant's row: where they lock it, and in which order `modified_at` changes.

use chrono::{DateTime, Utc};
use futures::future::join_all;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::support::{Database, TourService, eventually, payload, tours_of};

/// Whether a tour that waits for a row that the test holds had inserted before.
async fn waits_after_inserting(touch: &str) -> bool {
    waits_after_writing("order_position", &[("TOUR_DATA_TOUCH", touch)]).await
}

/// Whether it had written to this table.
async fn waits_after_writing(table: &str, settings: &[(&str, &str)]) -> bool {
    let database = Database::create().await;
    let service = TourService::start(&database, settings).await;
    let mut holder = PgConnection::connect(&database.url())
        .await
        .expect("the database answers");
    holder
        .execute("BEGIN; UPDATE tenant_config SET tenant_info = NULL WHERE tenant_key = 'BEHNGT'")
        .await
        .expect("held");
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(&mut holder)
        .await
        .expect("a pid");

    let tour = payload();
    let (waiter_has_inserted, _) = futures::join!(
        async {
            let waiter = format!(
                "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))"
            );
            let waiter = eventually("the tour waits for the row", async || {
                Some(database.number(&waiter).await).filter(|pid| *pid != 0)
            })
            .await;
            let inserted = format!(
                "SELECT count(*) FROM pg_locks WHERE pid = {waiter} AND relation = '{table}'::regclass AND mode = 'RowExclusiveLock'"
            );
            let inserted = database.number(&inserted).await == 1;
            holder.execute("COMMIT").await.expect("let go");
            inserted
        },
        service.create(&tour, None),
    );
    waiter_has_inserted
}

#[tokio::test]
async fn touches_that_come_first_wait_before_they_insert_and_update_last_afterwards() {
    assert!(!waits_after_inserting("update-first").await);
    assert!(!waits_after_inserting("select-for-update-first").await);
    assert!(waits_after_inserting("update-last").await);
}

/// Nobody should wait for the row while the message is written.
#[tokio::test]
async fn the_message_is_in_the_outbox_before_the_row_is_locked() {
    let settings = [("TOUR_DATA_TOUCH", "update-last"), ("TOUR_DATA_ANNOUNCE", "outbox")];
    assert!(waits_after_writing("outbox", &settings).await);
}

#[tokio::test]
async fn the_control_does_not_wait_for_the_row() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", "none")]).await;
    let mut holder = PgConnection::connect(&database.url())
        .await
        .expect("the database answers");
    holder
        .execute("BEGIN; UPDATE tenant_config SET tenant_info = NULL")
        .await
        .expect("held");
    service.create(&payload(), None).await;
    holder.execute("ROLLBACK").await.expect("let go");
}

#[tokio::test]
async fn under_select_for_update_modified_at_never_goes_backwards() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[("TOUR_DATA_TOUCH", "select-for-update-first")]).await;
    // The trigger runs under the row's lock, so the sequence numbers the changes in their order.
    let history = "CREATE TABLE history (change bigserial, modified_at timestamptz NOT NULL);
        CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO history (modified_at) VALUES (NEW.modified_at); RETURN NULL; END $$;
        CREATE TRIGGER remember AFTER UPDATE ON tenant_config FOR EACH ROW EXECUTE FUNCTION remember();";
    sqlx::raw_sql(AssertSqlSafe(history))
        .execute(&database.pool)
        .await
        .expect("the trigger is made");
    let tour = payload();
    join_all((0..10).map(async |_| {
        for _ in 0..5 {
            service.create(&tour, None).await;
        }
    }))
    .await;
    let changes: Vec<DateTime<Utc>> = sqlx::query_scalar("SELECT modified_at FROM history ORDER BY change")
        .fetch_all(&database.pool)
        .await
        .expect("the history can be read");
    assert_eq!(changes.len(), 50);
    assert!(changes.is_sorted(), "{changes:?}");
}

#[tokio::test]
async fn updates_of_the_tenant_row_are_heap_only() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    for _ in 0..20 {
        service.create(&payload(), None).await;
    }
    // Sessions report their counts when they are idle, at the latest when they end.
    service.running.shutdown().await.expect("it drains");
    assert_eq!(tours_of(&database).await, 20);
    eventually("20 updates are counted, nearly all of them heap-only", async || {
        let hot = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'tenant_config' AND n_tup_upd = 20";
        let hot: Option<i64> = sqlx::query_scalar(hot)
            .fetch_optional(&database.pool)
            .await
            .expect("the query runs");
        hot.filter(|hot| *hot >= 18)
    })
    .await;
}
