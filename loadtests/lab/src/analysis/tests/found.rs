//! Deadlocks and old snapshots: counted, claimed, and blamed before the row that everybody waits for.

use super::*;
use crate::events::{Deadlock, DeadlockSample, DeadlockedSession, HotSample, HotTable, RollbackSample};

const ROUNDS: &[f64] = &[10.0, 10.1, 9.9, 10.0];

/// Two arms, the first of which has these samples in every round.
fn analysed(samples: &[(f64, Sample)], claims: Vec<ClaimSpec>) -> Results {
    let arms = ["bad", "good"].map(|arm| Scripted {
        arm,
        throughput: ROUNDS,
        waiters: 9,
    });
    let mut events = stream(&arms, true);
    let loads: Vec<(usize, RunKey)> = events
        .iter()
        .enumerate()
        .filter_map(|(at, stamped)| match &stamped.event {
            Event::Load { key, .. } => Some((at, key.clone())),
            _ => None,
        })
        .collect();
    for (at, key) in loads.into_iter().rev() {
        let quiet = [(3.0, Sample::Deadlocks(DeadlockSample::default()))];
        let samples = if key.arm == "bad" { samples } else { &quiet[..] };
        for (t_s, sample) in samples.iter().rev() {
            let event = Event::Sample {
                key: key.clone(),
                t_s: *t_s,
                sample: sample.clone(),
            };
            events.insert(at, Stamped { at_ms: 0, event });
        }
    }
    analyse(&experiment(&arms, claims), &events).unwrap()
}

fn verdicts(results: &Results) -> Vec<Verdict> {
    results.claims.iter().map(|claim| claim.verdict).collect()
}

#[test]
fn deadlocks_of_the_measured_part_are_counted_explained_and_blamed() {
    let logged = Deadlock {
        relation: Some("tenant_config".into()),
        waited_ms: Some(1000.2),
        sessions: vec![DeadlockedSession::default(); 2],
        ..Deadlock::default()
    };
    let sample = |count: u64| {
        Sample::Deadlocks(DeadlockSample {
            count,
            logged: vec![logged.clone(); usize::try_from(count).unwrap()],
        })
    };
    // The first one is of the warm-up.
    let results = analysed(
        &[(1.0, sample(5)), (3.0, sample(2)), (4.0, sample(1))],
        vec![
            claim(Metric::Deadlocks, &["bad"], Expect::AtLeast, 1.0),
            claim(Metric::Deadlocks, &["good"], Expect::AtMost, 0.0),
            claim(Metric::Deadlocks, &["good"], Expect::AtLeast, 1.0),
        ],
    );
    assert_eq!(
        verdicts(&results),
        [Verdict::Reproduced, Verdict::Reproduced, Verdict::NotReproduced],
        "{:?}",
        results.claims
    );
    let [bad, good] = [0, 1].map(|arm| &results.arms[arm]);
    let deadlocks = bad.deadlocks.as_ref().unwrap();
    assert_eq!((deadlocks.count, deadlocks.kinds[0].count), (12, 12));
    assert_eq!(bad.measure(Metric::Deadlocks), Some(3.0));
    assert_eq!(bad.bottleneck.cause, Cause::Deadlocks, "{}", bad.bottleneck.text);
    assert_eq!(good.measure(Metric::Deadlocks), Some(0.0));
    assert_eq!(good.bottleneck.cause, Cause::RowLock);
}

#[test]
fn rollbacks_are_blamed_where_there_are_more_of_them_than_requests_that_succeeded() {
    let cause = |count: u64| {
        let sample = |count: u64| Sample::Rollbacks(RollbackSample { count });
        // The first one is of the warm-up.
        let results = analysed(&[(1.0, sample(1_000_000)), (3.0, sample(count))], Vec::new());
        results.arms[0].bottleneck.clone()
    };
    let blamed = cause(1_000_000);
    assert_eq!(blamed.cause, Cause::Rollbacks, "{}", blamed.text);
    assert!(
        blamed.text.starts_with("4000000 transactions were rolled back"),
        "{}",
        blamed.text
    );
    assert_eq!(cause(1).cause, Cause::RowLock);
}

#[test]
fn an_old_snapshot_with_what_it_keeps_is_blamed_and_either_alone_is_not() {
    let aged = |age: u64| {
        Sample::Activity(ActivitySample {
            snapshot_age: Some(age),
            ..ActivitySample::default()
        })
    };
    let grown = |bytes: u64| {
        let table = HotTable {
            updates: 5000,
            bytes,
            ..HotTable::default()
        };
        let larger = HotTable {
            inserts: 5000,
            bytes: 90_000_000,
            ..HotTable::default()
        };
        Sample::Hot(HotSample {
            tables: BTreeMap::from([("address".to_owned(), larger), ("tenant_config".to_owned(), table)]),
        })
    };
    let claims = || {
        vec![
            claim(Metric::SnapshotAge, &["bad"], Expect::AtLeast, 1000.0),
            claim(Metric::HotTable, &["bad"], Expect::AtLeast, 2000.0),
        ]
    };
    // What the last samples show is that it is over.
    let results = analysed(
        &[
            (3.0, aged(4000)),
            (3.0, grown(2_500_000)),
            (6.0, aged(3)),
            (6.0, grown(8192)),
        ],
        claims(),
    );
    assert_eq!(verdicts(&results), [Verdict::Reproduced; 2], "{:?}", results.claims);
    let bad = &results.arms[0];
    assert_eq!(bad.bottleneck.cause, Cause::OldSnapshot);
    for part in ["4000 transactions", "tenant_config has grown to 2.5 MB"] {
        assert!(bad.bottleneck.text.contains(part), "{}", bad.bottleneck.text);
    }
    for samples in [
        vec![(3.0, aged(4000)), (3.0, grown(8192))],
        vec![(3.0, aged(5)), (3.0, grown(2_500_000))],
        // Each was there, but not at once.
        vec![
            (3.0, aged(4000)),
            (3.0, grown(8192)),
            (6.0, aged(3)),
            (6.0, grown(2_500_000)),
        ],
    ] {
        assert_eq!(analysed(&samples, claims()).arms[0].bottleneck.cause, Cause::RowLock);
    }
}

#[test]
fn a_table_that_was_not_updated_is_not_the_one_that_was_updated_most() {
    let table = |updates: u64, bytes: u64| HotTable {
        updates,
        bytes,
        ..HotTable::default()
    };
    let hot = |address: HotTable, config: HotTable| {
        let tables = [("address", address), ("tenant_config", config)];
        Sample::Hot(HotSample {
            tables: tables.map(|(name, table)| (name.to_owned(), table)).into(),
        })
    };
    let idle = hot(table(0, 90_000_000), table(0, 8192));
    assert_eq!(analysed(&[(3.0, idle.clone())], Vec::new()).arms[0].versions, None);
    // Name and size are of the same sample.
    let samples = [
        (3.0, idle),
        (4.0, hot(table(0, 90_000_000), table(9, 40_000))),
        (5.0, hot(table(10, 8192), table(9, 40_000))),
    ];
    let seen = analysed(&samples, Vec::new()).arms[0].versions.clone().unwrap();
    assert_eq!((seen.relation.as_str(), seen.bytes), ("tenant_config", 40_000));
}
