//! Which statements a tour is, and that each is a round trip of its own: read along on the link to PostgreSQL.

use std::collections::BTreeMap;

use crate::support::{Database, Link, TourService, payload};
use crate::support::{Sent, tours_of};

const UPDATE: &str = "UPDATE tenant_config SET modified_at=$1, tenant=$2, tenant_info=$3, tenant_key=$4 WHERE id=$5";

/// The statements of one tour, on a connection that has prepared them before.
async fn statements(touch: &str, isolation: &str) -> Vec<Sent> {
    let database = Database::create().await;
    let link = Link::to(Database::server_addr()).await;
    let url = database.url_via(link.addr);
    let settings = [
        ("TOUR_DATA_TOUCH", touch),
        ("TOUR_DATA_ISOLATION", isolation),
        ("TOUR_DATA_DB_URL", &url),
        ("TOUR_DATA_DB_POOL_MAX", "1"),
    ];
    let service = TourService::start(&database, &settings).await;
    service.create(&payload(), None).await;
    link.take_sent();
    service.create(&payload(), None).await;
    let sent = link.take_sent();
    assert_eq!(tours_of(&database).await, 2);
    // Readiness asks on the same connection, between transactions.
    let begin = sent
        .iter()
        .position(|one| one.sql.starts_with("BEGIN"))
        .expect("BEGIN is sent");
    let commit = sent.iter().position(|one| one.sql == "COMMIT").expect("COMMIT is sent");
    sent[begin..=commit].to_vec()
}

fn inserts(sent: &[Sent]) -> BTreeMap<&str, usize> {
    let mut tables = BTreeMap::new();
    for one in sent {
        if let Some(rest) = one.sql.strip_prefix("INSERT INTO ") {
            *tables.entry(rest.split(' ').next().expect("a table")).or_default() += 1;
        }
    }
    tables
}

fn others(sent: &[Sent]) -> Vec<(usize, &str)> {
    let numbered = sent.iter().enumerate();
    numbered
        .filter(|(_, one)| !one.sql.starts_with("INSERT "))
        .map(|(at, one)| (at, one.sql.as_str()))
        .collect()
}

fn assert_one_round_trip_each(sent: &[Sent]) {
    let first = sent[0].turnaround;
    for (statement, expected) in sent.iter().zip(first..) {
        assert_eq!(statement.turnaround, expected, "{}", statement.sql);
    }
}

#[tokio::test]
async fn the_baseline_is_the_published_update_and_then_87_inserts_each_a_round_trip() {
    let sent = statements("update-first", "read-committed").await;
    let tables = [
        ("address", 26),
        ("order_position", 34),
        ("stop", 9),
        ("tour", 1),
        ("tour_order", 17),
    ];
    assert_eq!(inserts(&sent), BTreeMap::from(tables));
    assert_eq!(others(&sent), [(0, "BEGIN"), (1, UPDATE), (89, "COMMIT")]);
    assert_one_round_trip_each(&sent);
}

#[tokio::test]
async fn update_last_moves_the_same_statement_behind_the_inserts() {
    let sent = statements("update-last", "read-committed").await;
    assert_eq!(inserts(&sent).values().sum::<usize>(), 87);
    assert_eq!(others(&sent), [(0, "BEGIN"), (88, UPDATE), (89, "COMMIT")]);
    assert_one_round_trip_each(&sent);
}

#[tokio::test]
async fn select_for_update_first_locks_before_it_updates() {
    let sent = statements("select-for-update-first", "read-committed").await;
    assert_eq!(inserts(&sent).values().sum::<usize>(), 87);
    let lock = "SELECT id FROM tenant_config WHERE id=$1 FOR UPDATE";
    assert_eq!(others(&sent), [(0, "BEGIN"), (1, lock), (2, UPDATE), (90, "COMMIT")]);
    assert_one_round_trip_each(&sent);
}

#[tokio::test]
async fn the_control_sends_the_inserts_and_nothing_else() {
    let sent = statements("none", "read-committed").await;
    assert_eq!(inserts(&sent).values().sum::<usize>(), 87);
    assert_eq!(others(&sent), [(0, "BEGIN"), (88, "COMMIT")]);
}

#[tokio::test]
async fn another_isolation_level_is_asked_for_in_begin() {
    let sent = statements("update-last", "serializable").await;
    assert_eq!(sent[0].sql, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_one_round_trip_each(&sent);
}

/// What two tours without touch send, on a connection that has prepared it before, by an inserter.
async fn sent_by(inserts: &str) -> Vec<Sent> {
    let database = Database::create().await;
    let link = Link::to(Database::server_addr()).await;
    let url = database.url_via(link.addr);
    let settings = [
        ("TOUR_DATA_INSERTS", inserts),
        ("TOUR_DATA_TOUCH", "update-last"),
        ("TOUR_DATA_DB_URL", &url),
        ("TOUR_DATA_DB_POOL_MAX", "1"),
    ];
    let service = TourService::start(&database, &settings).await;
    service.create(&payload(), None).await;
    link.take_sent();
    service.create(&payload(), None).await;
    assert_eq!(tours_of(&database).await, 2);
    // Readiness asks as well.
    let sent = link.take_sent();
    sent.into_iter().filter(|one| !one.sql.is_empty()).collect()
}

#[tokio::test]
async fn multi_row_is_one_insert_a_table() {
    let sent = sent_by("multi-row").await;
    assert_eq!(inserts(&sent).values().sum::<usize>(), 5);
    assert_eq!(others(&sent), [(0, "BEGIN"), (6, UPDATE), (7, "COMMIT")]);
    assert_one_round_trip_each(&sent);
}

#[tokio::test]
async fn a_fused_tour_is_one_statement_and_neither_begin_nor_commit() {
    for inserts in ["single-statement", "function"] {
        let sent = sent_by(inserts).await;
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert!(sent[0].sql.starts_with("WITH ") && sent[0].sql.contains("UPDATE tenant_config"));
    }
}

#[tokio::test]
async fn a_pipelined_tour_is_sent_before_it_is_answered() {
    let sent = sent_by("pipelined").await;
    assert_eq!(inserts(&sent).values().sum::<usize>(), 87);
    assert_eq!(others(&sent), [(0, "BEGIN"), (88, UPDATE), (89, "COMMIT")]);
    // The server may begin to answer while the last are being sent: far fewer turns than statements.
    let turns = sent[89].turnaround - sent[0].turnaround;
    assert!(turns <= 30, "{turns} turns");
}
