//! The audit on histories made by hand, with a real database: each breaks one rule, and the invariant that is named for the
//! rule finds it. Times are milliseconds after [`BASE`].

use std::sync::atomic::{AtomicU32, Ordering};

use uuid::Uuid;

use super::super::Outage;
use super::super::ledger::{Acknowledged, Ledger};
use super::*;
use crate::facts::{Cause, Loss, Lost};
use crate::results::AuditCheck;
use crate::testing::{Scratch, invariants, migrations};

const BASE: u64 = 1_750_000_000_000;
/// A head, one stop and its address.
const ROWS: u32 = 3;

/// What all witnesses say. Made right, to be spoilt.
#[derive(Clone)]
struct Story {
    acknowledged: Vec<Acknowledged>,
    delivered: BTreeMap<String, u32>,
    sightings: Vec<Sighting>,
    promises: Promises,
    may_lose: Duration,
    expected: Expected,
}

fn read(at: u64, modified: u64, info: Option<&str>) -> Sighting {
    Sighting {
        modified_ms: BASE + modified,
        ..Sighting::new(BASE + at, info)
    }
}

fn crash(part: &str, began: u64, ended: u64) -> Outage {
    Outage {
        part: part.to_owned(),
        period: [BASE + began, BASE + ended],
        crash: Some([BASE + began, BASE + began + 20]),
    }
}

impl Story {
    /// Four tours, one a second, of which the second and the fourth change the configuration; a reader looks after each.
    async fn right(scratch: &Scratch) -> Self {
        let mut story = Self {
            acknowledged: Vec::new(),
            delivered: BTreeMap::new(),
            sightings: Vec::new(),
            promises: Promises {
                touch: promise("exact", &[]),
                announce: Promise {
                    delivery: "at-least-once".into(),
                    ..Promise::default()
                },
                announcer: "tour-data".into(),
            },
            may_lose: Duration::ZERO,
            expected: Expected {
                rows_per_tour: Some(ROWS),
                ..Expected::default()
            },
        };
        for (second, info) in [(1, None), (2, Some("a")), (3, None), (4, Some("b"))] {
            let (tour, stop, address) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
            let at = format!("to_timestamp({}::float8 / 1000)", BASE + second * 1000 + 100);
            let rows = format!(
                "INSERT INTO tour VALUES ('{tour}', 7, 'n', 't', 's', '2025-06-01', 'v', NULL, 'v', 'd', NULL, NULL, NULL, \
                     'key-{second}', decode(repeat('00', 32), 'hex'), {at});
                 INSERT INTO address VALUES ('{address}', 'n', NULL, NULL, 's', 'p', 'c', 'DE', 0, 0);
                 INSERT INTO stop VALUES ('{stop}', '{tour}', '{address}', 1, 's', {at}, {at});
                 UPDATE tenant_config SET modified_at = {at} WHERE id = 7;"
            );
            scratch.run(&rows).await;
            story.acknowledged.push(Acknowledged {
                tour_id: tour,
                rows: ROWS,
                idempotency_key: Some(format!("key-{second}")),
                tenant: "BEHNGT".into(),
                info: info.map(str::to_owned),
                sent_at_ms: BASE + second * 1000,
                acked_at_ms: BASE + second * 1000 + 500,
            });
            story.delivered.insert(tour.to_string(), 1);
            story
                .sightings
                .push(read(second * 1000 + 600, second * 1000 + 100, info));
        }
        story
    }

    async fn judge(&self, scratch: &Scratch) -> Audit {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rowlock-case-{}-{number}.csv", std::process::id()));
        let ledger = Ledger::create(&path).unwrap();
        for each in &self.acknowledged {
            ledger.record(each);
        }
        let acknowledged = ledger.close().unwrap();
        let case = Case {
            databases: vec![(scratch.url.clone(), invariants())],
            acknowledged: &acknowledged,
            loaded_until: u64::MAX,
            delivered: &self.delivered,
            sightings: &BTreeMap::from([("BEHNGT".to_owned(), self.sightings.clone())]),
            promises: &self.promises,
            may_lose: self.may_lose,
            expected: &self.expected,
        };
        let audit = case.judge().await.unwrap();
        acknowledged.remove().unwrap();
        audit
    }

    /// Names of the invariants that do not hold.
    async fn broken(&self, scratch: &Scratch) -> Vec<String> {
        let audit = self.judge(scratch).await;
        let broken: Vec<&AuditCheck> = audit.checks.iter().filter(|check| !check.passed).collect();
        assert_eq!(audit.passed, broken.is_empty());
        broken.into_iter().map(|check| check.name.clone()).collect()
    }
}

fn promise(config: &str, loses: &[Loss]) -> Promise {
    Promise {
        config: config.into(),
        kept: "row".into(),
        modified_at: "monotone".into(),
        loses: loses.to_vec(),
        ..Promise::default()
    }
}

/// All rows of the last tour.
const LAST_TOUR: &str = "DELETE FROM address WHERE id IN (SELECT address_id FROM stop s JOIN tour t ON t.id = s.tour_id WHERE \
    idempotency_key = 'key-4'); DELETE FROM stop WHERE tour_id IN (SELECT id FROM tour WHERE idempotency_key = 'key-4'); \
    DELETE FROM tour WHERE idempotency_key = 'key-4'";

#[tokio::test]
async fn a_right_history_passes_and_a_row_that_was_dropped_is_found_in_the_database() {
    let scratch = Scratch::create(&migrations()).await;
    let story = Story::right(&scratch).await;
    let audit = story.judge(&scratch).await;
    assert!(audit.passed, "{:#?}", audit.checks);
    let names: Vec<&str> = audit.checks.iter().map(|check| check.name.as_str()).collect();
    for name in [
        "rows-per-tour",
        "lost-acknowledged",
        "message-per-acknowledged",
        "no-message-twice",
        "exact-tenant-config",
        "reader-sees-every-change",
        "reader-sees-no-overwritten-value",
        "modified-at-is-monotone",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert_eq!((audit.acknowledged, audit.delivered, audit.duplicates), (4, 4, 0));
    assert_eq!((audit.stale_ms, audit.behind_ms), (vec![0, 0], vec![0; 4]));

    scratch
        .run("DELETE FROM address WHERE id IN (SELECT address_id FROM stop LIMIT 1)")
        .await;
    assert_eq!(story.broken(&scratch).await, ["rows-per-tour"]);
    scratch.drop_database().await;
}

#[tokio::test]
async fn what_readers_or_subscribers_should_not_have_seen_is_found() {
    let scratch = Scratch::create(&migrations()).await;
    let right = Story::right(&scratch).await;
    let spoilt = |spoil: fn(&mut Story)| {
        let mut story = right.clone();
        spoil(&mut story);
        story
    };

    let lost_change = spoilt(|story| {
        story.promises.touch = promise("on-change", &[]);
        story.sightings[3] = read(4_600, 3_100, None);
    });
    assert_eq!(lost_change.broken(&scratch).await, ["reader-sees-no-overwritten-value"]);
    let stale = lost_change.judge(&scratch).await.stale_ms;
    assert_eq!(stale, [0, 100], "from the 201 to the read");

    let overwritten = spoilt(|story| story.sightings.push(read(4_700, 4_100, Some("a"))));
    assert_eq!(overwritten.broken(&scratch).await, ["reader-sees-no-overwritten-value"]);

    let stale = spoilt(|story| {
        story.promises.touch = promise("coarse(1000ms)", &[]);
        story.sightings[3] = read(4_600, 2_900, Some("b"));
        story.sightings[2] = read(3_600, 2_900, None);
    });
    assert_eq!(stale.broken(&scratch).await, ["modified-at-is-no-staler-than-promised"]);
    assert_eq!(stale.judge(&scratch).await.behind_ms, [0, 0, 100, 1_100]);

    let backwards = spoilt(|story| story.sightings.push(read(4_700, 4_099, Some("b"))));
    assert_eq!(backwards.broken(&scratch).await, ["modified-at-is-monotone"]);

    let twice = spoilt(|story| story.delivered.values_mut().for_each(|copies| *copies = 2));
    assert_eq!(twice.broken(&scratch).await, ["no-message-twice"]);
    scratch.drop_database().await;
}

#[tokio::test]
async fn what_a_touch_loses_is_excused_by_a_crash_as_far_as_it_was_not_promised_yet() {
    let scratch = Scratch::create(&migrations()).await;
    let mut story = Story::right(&scratch).await;
    let loses = |of| promise("eventual(1000ms)", &[Loss::of(of, &[Cause::Replica])]);
    story.promises.touch = loses(Lost::Acknowledged);
    // The change of the fourth tour never came.
    story.sightings[3] = read(9_000, 3_100, None);
    let broken = [
        "modified-at-is-no-staler-than-promised",
        "reader-sees-no-overwritten-value",
    ];
    assert_eq!(story.broken(&scratch).await, broken);
    story.expected.outages = vec![crash("tour-data", 5_000, 5_400)];
    let audit = story.judge(&scratch).await;
    assert!(audit.passed && audit.older_reads == 1, "{:#?}", audit.checks);
    story.expected.outages = vec![crash("tour-data", 5_600, 6_000)];
    assert_eq!(
        story.broken(&scratch).await,
        broken,
        "it was promised a second after its 201"
    );
    for other in ["gateway", "postgres"] {
        story.expected.outages = vec![crash(other, 5_000, 5_400)];
        assert_eq!(
            story.broken(&scratch).await,
            broken,
            "{other} keeps nothing of this touch"
        );
    }
    story.expected.outages = vec![crash("tour-data", 5_000, 5_400)];
    story.promises.touch = loses(Lost::Unacknowledged);
    assert_eq!(story.broken(&scratch).await, broken, "it was acknowledged");
    story.promises.touch = loses(Lost::ModifiedAt);
    assert_eq!(
        story.broken(&scratch).await,
        ["reader-sees-no-overwritten-value"],
        "a value is lost"
    );
    story.promises.touch = promise("on-change", &[]);
    assert_eq!(
        story.broken(&scratch).await,
        ["reader-sees-no-overwritten-value"],
        "no loss is declared"
    );
    scratch.drop_database().await;
}

#[tokio::test]
async fn a_message_that_is_missing_is_excused_by_a_fault_where_that_is_declared() {
    let scratch = Scratch::create(&migrations()).await;
    let mut story = Story::right(&scratch).await;
    let silent = story.acknowledged[1].tour_id.to_string();
    story.delivered.remove(&silent);
    story.expected.outages = vec![crash("rabbitmq", 2_100, 2_900)];
    assert_eq!(
        story.broken(&scratch).await,
        ["message-per-acknowledged"],
        "at least once"
    );

    story.promises.announce.delivery = "at-most-once".into();
    assert_eq!(
        story.broken(&scratch).await,
        ["message-per-acknowledged"],
        "no loss is declared"
    );
    story.promises.announce.loses = vec![Loss::of(Lost::Acknowledged, &[Cause::Broker])];
    let audit = story.judge(&scratch).await;
    assert!(audit.passed && audit.lost_messages == 1, "{:#?}", audit.checks);
    for unrelated in [crash("postgres", 2_100, 2_900), crash("rabbitmq", 60_000, 61_000)] {
        story.expected.outages = vec![unrelated];
        assert_eq!(story.broken(&scratch).await, ["message-per-acknowledged"]);
    }
    story.delivered.insert(silent, 2);
    assert_eq!(
        story.broken(&scratch).await,
        ["no-message-twice"],
        "never, whatever happens"
    );
    scratch.drop_database().await;
}

#[tokio::test]
async fn a_tour_that_is_gone_is_excused_by_a_crash_of_a_server_that_declares_it_and_by_nothing_else() {
    let scratch = Scratch::create(&migrations()).await;
    let mut story = Story::right(&scratch).await;
    story.promises.touch = promise("unwritten", &[]);
    story.sightings.clear();
    scratch.run(LAST_TOUR).await;
    let broken = ["lost-acknowledged", "no-message-without-tour"];
    let broken_after = async |story: &Story| {
        let mut found = story.broken(&scratch).await;
        found.sort();
        found
    };
    story.expected.outages = vec![crash("postgres", 5_000, 6_000)];
    assert_eq!(broken_after(&story).await, broken, "it declares no loss");

    story.may_lose = Duration::from_millis(600);
    let audit = story.judge(&scratch).await;
    assert!(audit.passed && audit.declared_losses == 1, "{:#?}", audit.checks);
    story.expected.outages = vec![crash("postgres", 5_200, 6_000)];
    assert_eq!(broken_after(&story).await, broken, "longer ago than declared");
    story.expected.outages = vec![crash("tour-data", 5_000, 6_000)];
    assert_eq!(broken_after(&story).await, broken, "another part");
    scratch.drop_database().await;
}
