//! The audit's SQL, run the way the lab does, finds what a wrong alternative does.

use std::path::Path;

use chrono::{DateTime, Duration, Utc};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

use crate::support::Database;

/// A 201 as the load generator records it.
pub(crate) struct Acknowledged {
    pub(crate) tour: Uuid,
    pub(crate) key: Option<String>,
    /// Key of the tenant that it was created for.
    pub(crate) tenant: String,
    pub(crate) rows: i32,
    pub(crate) sent_at: DateTime<Utc>,
    pub(crate) acked_at: DateTime<Utc>,
}

/// Every violation as `file: subject detail`. Files that start with `exact-` are left out unless `exact`.
pub(crate) async fn audit(
    database: &Database,
    acknowledged: &[Acknowledged],
    delivered: impl IntoIterator<Item = (String, i32)>,
    exact: bool,
) -> Vec<String> {
    audit_with_crash(database, acknowledged, delivered, exact, None).await
}

/// The same where tours of different sizes were sent: each has the rows that its 201 told.
pub(crate) async fn audit_mixed(
    database: &Database,
    acknowledged: &[Acknowledged],
    delivered: impl IntoIterator<Item = (String, i32)>,
) -> Vec<String> {
    run_audit(database, acknowledged, delivered, false, None, None).await
}

/// The same after a crash, of which the time is given, of a server that may lose commits in one.
async fn audit_with_crash(
    database: &Database,
    acknowledged: &[Acknowledged],
    delivered: impl IntoIterator<Item = (String, i32)>,
    exact: bool,
    crash: Option<[DateTime<Utc>; 2]>,
) -> Vec<String> {
    run_audit(database, acknowledged, delivered, exact, crash, Some(87)).await
}

async fn run_audit(
    database: &Database,
    acknowledged: &[Acknowledged],
    delivered: impl IntoIterator<Item = (String, i32)>,
    exact: bool,
    crash: Option<[DateTime<Utc>; 2]>,
    rows_per_tour: Option<i32>,
) -> Vec<String> {
    let mut session = PgConnection::connect(&database.url())
        .await
        .expect("the database answers");
    session
        .execute(
            "CREATE TEMP TABLE acknowledged (tour_id uuid, idempotency_key text, tenant text, rows int, sent_at timestamptz, acked_at timestamptz);
             CREATE TEMP TABLE delivered (message_id text, copies int);
             CREATE TEMP TABLE expectation (rows_per_tour int);
             CREATE TEMP TABLE crash (began_at timestamptz, ended_at timestamptz);",
        )
        .await
        .expect("the tables are made");
    let insert = sqlx::query("INSERT INTO expectation VALUES ($1)").bind(rows_per_tour);
    insert.execute(&mut session).await.expect("it is recorded");
    if let Some([began, ended]) = crash {
        let insert = sqlx::query("INSERT INTO crash VALUES ($1, $2)").bind(began).bind(ended);
        insert.execute(&mut session).await.expect("it is recorded");
    }
    for ack in acknowledged {
        sqlx::query("INSERT INTO acknowledged VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(ack.tour)
            .bind(&ack.key)
            .bind(&ack.tenant)
            .bind(ack.rows)
            .bind(ack.sent_at)
            .bind(ack.acked_at)
            .execute(&mut session)
            .await
            .expect("it is recorded");
    }
    for (id, copies) in delivered {
        let insert = sqlx::query("INSERT INTO delivered VALUES ($1, $2)")
            .bind(id)
            .bind(copies);
        insert.execute(&mut session).await.expect("it is recorded");
    }
    let mut violations = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("audit");
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("it can be read").path();
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name")
            .to_owned();
        if name.starts_with("exact-") && !exact {
            continue;
        }
        let sql = std::fs::read_to_string(&path).expect("the file can be read");
        let rows: Vec<(String, String)> = sqlx::query_as(AssertSqlSafe(sql))
            .fetch_all(&mut session)
            .await
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        violations.extend(
            rows.into_iter()
                .map(|(subject, detail)| format!("{name}: {subject} {detail}")),
        );
    }
    violations.sort();
    violations
}

/// Two tours of tenant 7 by hand, as small as they can be: a head, one stop and its address.
async fn two_tours(database: &Database) -> [Acknowledged; 2] {
    let start: DateTime<Utc> = "2025-06-01T10:00:00Z".parse().expect("a time");
    let mut acknowledged = Vec::new();
    for number in 1..=2 {
        let at = start + Duration::seconds(number);
        let (tour, stop, address) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
        let sql = format!(
            "INSERT INTO tour VALUES ('{tour}', 7, 'n', 't', 's', '2025-06-01', 'v', NULL, 'v', 'd', NULL, NULL, NULL, 'key-{number}', decode(repeat('00', 32), 'hex'), '{at}');
             INSERT INTO address VALUES ('{address}', 'n', NULL, NULL, 's', 'p', 'c', 'DE', 0, 0);
             INSERT INTO stop VALUES ('{stop}', '{tour}', '{address}', 1, 's', '{at}', '{at}');
             UPDATE tenant_config SET modified_at = '{at}' WHERE id = 7;"
        );
        let script = format!("BEGIN; {sql} COMMIT;");
        sqlx::raw_sql(AssertSqlSafe(script))
            .execute(&database.pool)
            .await
            .expect("the rows are written");
        let acked_at = at + Duration::milliseconds(500);
        acknowledged.push(Acknowledged {
            tour,
            key: Some(format!("key-{number}")),
            tenant: "BEHNGT".to_owned(),
            rows: 3,
            sent_at: at,
            acked_at,
        });
    }
    acknowledged
        .try_into()
        .unwrap_or_else(|_| unreachable!("there are two"))
}

/// Names of the audit files that found something, when `spoil` was done to a history that was right.
async fn found_after(spoil: &str) -> Vec<String> {
    let database = Database::create().await;
    let mut acknowledged = two_tours(&database).await;
    for ack in &mut acknowledged {
        ack.rows = 87;
    }
    let mut delivered: Vec<_> = acknowledged.iter().map(|ack| (ack.tour.to_string(), 1)).collect();
    match spoil {
        "lose a message" => drop(delivered.pop()),
        "invent a message" => delivered.push((Uuid::now_v7().to_string(), 1)),
        "answer one key twice" => acknowledged[1].key = acknowledged[0].key.clone(),
        "answer with fewer rows" => acknowledged[0].rows = 86,
        sql => drop(
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
                .execute(&database.pool)
                .await
                .expect("it runs"),
        ),
    }
    let violations = audit(&database, &acknowledged, delivered, true).await;
    // The tours have 3 rows and not 87, which is not what these tests are about.
    let mut files: Vec<String> = violations
        .iter()
        .filter(|violation| !violation.contains("has 3 rows"))
        .map(|violation| violation.split(':').next().expect("a name").to_owned())
        .collect();
    files.dedup();
    files
}

#[tokio::test]
async fn a_right_history_has_no_violation() {
    assert_eq!(found_after("SELECT 1").await, [""; 0]);
}

#[tokio::test]
async fn a_lost_or_invented_message_is_found() {
    assert_eq!(found_after("lose a message").await, ["message-per-acknowledged"]);
    assert_eq!(found_after("invent a message").await, ["no-message-without-tour"]);
}

#[tokio::test]
async fn a_crash_that_may_lose_commits_excuses_what_was_announced_and_not_acknowledged_before_it() {
    let database = Database::create().await;
    let at = |ms: i64| {
        Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::NoContext,
            1_700_000_000 + (ms / 1000) as u64,
            0,
        ))
    };
    let crash = [1_700_000_100, 1_700_000_101].map(|s| DateTime::from_timestamp(s, 0).expect("a time"));
    let [during, long_before, after] = [90_000, 10_000, 110_000].map(|ms| at(ms).to_string());
    for (message, excused) in [(&during, true), (&long_before, false), (&after, false)] {
        let delivered = [(message.clone(), 1)];
        let found = audit_with_crash(&database, &[], delivered, false, Some(crash)).await;
        assert_eq!(found.is_empty(), excused, "{found:?}");
    }
    let acknowledged = [Acknowledged {
        tour: during.parse().expect("an id"),
        key: None,
        tenant: "BEHNGT".to_owned(),
        rows: 87,
        sent_at: crash[0],
        acked_at: crash[0],
    }];
    let found = audit_with_crash(&database, &acknowledged, [(during, 1)], false, Some(crash)).await;
    assert_eq!(found.len(), 2, "an acknowledged tour is the lab's to excuse: {found:?}");
}

#[tokio::test]
async fn a_wrong_answer_is_found() {
    assert_eq!(
        found_after("answer one key twice").await,
        ["acknowledged-present", "one-tour-per-key"]
    );
    assert_eq!(found_after("answer with fewer rows").await, ["acknowledged-present"]);
}

#[tokio::test]
async fn a_tour_under_another_tenant_is_found() {
    let other = "UPDATE tour SET tenant_config_id = 23 WHERE idempotency_key = 'key-1'";
    assert_eq!(
        found_after(other).await,
        ["exact-tenant-config", "tour-of-its-tenant"],
        "it is not the other tenant's row that it wrote"
    );
    let nobody = "UPDATE tour SET tenant_config_id = 99 WHERE idempotency_key = 'key-1'";
    assert_eq!(found_after(nobody).await, ["tenant-in-one-place", "tour-of-its-tenant"]);
}

#[tokio::test]
async fn a_tenant_that_is_not_where_the_directory_says_is_found() {
    let elsewhere = "INSERT INTO tenant_shard VALUES ('BEHNGT', 7, 'shard_1')";
    assert_eq!(found_after(elsewhere).await, ["tenant-in-one-place"]);
    let nowhere = "INSERT INTO tenant_shard VALUES ('NOBODY', 99, 'shard_1')";
    assert_eq!(found_after(nowhere).await, ["tenant-in-one-place"]);
}

#[tokio::test]
async fn rows_that_are_missing_or_belong_to_nothing_are_found() {
    assert_eq!(found_after("DELETE FROM address").await, ["rows-per-tour"]);
    assert_eq!(
        found_after("DELETE FROM tour WHERE idempotency_key = 'key-1'").await,
        ["lost-acknowledged", "no-message-without-tour", "rows-per-tour"]
    );
    let stray = "INSERT INTO address VALUES (gen_random_uuid(), 'n', NULL, NULL, 's', 'p', 'c', 'DE', 0, 0)";
    assert_eq!(found_after(stray).await, ["rows-per-tour"]);
}

#[tokio::test]
async fn a_second_tour_for_a_key_is_found_even_without_the_index() {
    let spoil = "DROP INDEX tour_idempotency_key; UPDATE tour SET idempotency_key = 'key-1'";
    assert_eq!(found_after(spoil).await, ["acknowledged-present", "one-tour-per-key"]);
}

#[tokio::test]
async fn a_tenant_row_that_the_last_tours_did_not_write_is_found() {
    let lost = "UPDATE tenant_config SET modified_at = '2025-06-01T10:00:01Z' WHERE id = 7";
    assert_eq!(found_after(lost).await, ["exact-tenant-config"]);
}
