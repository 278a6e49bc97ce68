//! Runs made by hand, compared and refused.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::report::tests::results;

fn run() -> Run {
    let mut results = results();
    results.completed = true;
    results.failures.clear();
    for arm in &mut results.arms {
        arm.audit.passed = true;
        arm.throughput.rounds = vec![10.0, 10.2, 9.8, 10.0];
        arm.p95_rounds_ms = vec![1200.0, 1250.0, 1150.0, 1200.0];
    }
    let mut experiment = Experiment::find("replica-scaling").unwrap();
    experiment.arms.retain(|arm| arm.name.starts_with("1 replica"));
    Run {
        experiment,
        archived: Archived {
            folder: PathBuf::new(),
            results,
        },
    }
}

#[test]
fn a_change_beyond_the_rounds_spread_is_found_and_one_within_is_not() {
    let (a, mut b) = (run(), run());
    let [first, second] = &mut b.archived.results.arms[..] else {
        panic!("two arms")
    };
    first.throughput.rounds = vec![13.0, 13.2, 12.8, 13.0];
    first.p95_rounds_ms = vec![900.0, 950.0, 850.0, 900.0];
    second.throughput.rounds = vec![10.1, 10.3, 9.9, 10.1];
    b.archived.results.claims[0].verdict = Verdict::Reproduced;
    let changes = compare(&a, &b).unwrap();
    let [first, second] = &changes.arms[..] else {
        panic!("two arms")
    };
    assert!((first.throughput.ratio - 1.3).abs() < 0.001, "{:?}", first.throughput);
    assert_eq!(
        (first.throughput.finding, first.p95.finding),
        (Finding::Higher, Finding::Lower)
    );
    assert_eq!(second.throughput.finding, Finding::NoDifferenceShown);
    assert_eq!(second.p95.ci95.map(|[low, high]| low < 1.0 && high > 1.0), Some(true));
    let wanted = ClaimChange {
        text: "It <b>holds</b>".into(),
        a: Verdict::NotReproduced,
        b: Verdict::Reproduced,
    };
    assert_eq!(changes.claims, [wanted]);
    assert!(changes.method.contains("not paired"));
}

#[test]
fn fewer_than_four_rounds_are_compared_and_inconclusive() {
    let (a, mut b) = (run(), run());
    b.archived.results.rounds = 3;
    b.archived.results.arms[0].throughput.rounds.pop();
    b.archived.results.arms[0].p95_rounds_ms.clear();
    let changes = compare(&a, &b).unwrap();
    let first = &changes.arms[0];
    assert_eq!(
        (first.throughput.finding, first.throughput.ci95),
        (Finding::Inconclusive, None)
    );
    assert_eq!((first.p95.finding, first.p95.ratio), (Finding::Inconclusive, 1.0));
    assert_eq!(changes.arms[1].throughput.finding, Finding::NoDifferenceShown);
    assert_eq!(changes.differences, ["rounds: 4 in A, 3 in B"]);
}

#[test]
fn what_is_not_comparable_is_refused_and_says_why() {
    type Change = fn(&mut Run);
    let wrong: [(Change, &str); 14] = [
        (
            |run| run.archived.results.experiment = "token-check".into(),
            "A is a run of the experiment replica-scaling, B of",
        ),
        (|run| run.experiment.users = 20, "users: 10 in A, 20 in B"),
        (
            |run| run.experiment.arms[1].users = Some(5),
            "arm `1 replica, tuned`.users: nothing in A, 5 in B",
        ),
        (
            |run| run.experiment.duration = Duration::from_secs(60),
            "duration: 2m in A, 1m in B",
        ),
        (
            |run| run.experiment.think = Duration::from_millis(5),
            "think: nothing in A, 5ms in B",
        ),
        (
            |run| run.experiment.payload = "other.json".into(),
            "payload: create-tour.json in A, other.json in B",
        ),
        (
            |run| run.experiment.arms[1].postgres = Some("default".into()),
            "arm `1 replica, tuned`.postgres: tuned in A",
        ),
        (
            |run| *run.experiment.common.rtt.get_mut(&deploy::LinkName::Db).unwrap() = Duration::from_millis(2),
            "common.rtt.db: 1ms in A, 2ms in B",
        ),
        (
            |run| run.experiment.arms.truncate(1),
            "arm `1 replica, tuned` is in A only",
        ),
        (|run| run.archived.results.environment.cpus = 8, "other machines: 0 × "),
        (|run| run.archived.results.environment.memory_mb = 4096, "4096 MB in B"),
        (
            |run| run.archived.results.arms[0].audit.passed = false,
            "B: the audit of arm `1 replica, untuned` failed",
        ),
        (|run| run.archived.results.completed = false, "B is no whole run"),
        (
            |run| run.archived.results.arms[0].rtt_ms = 1.5,
            "round trip of 1.50 ms instead of 1.00 ms",
        ),
    ];
    for (change, told) in wrong {
        let (a, mut b) = (run(), run());
        change(&mut b);
        let reasons = compare(&a, &b).unwrap_err();
        assert!(
            reasons.iter().any(|reason| reason.contains(told)),
            "{told}: {reasons:?}"
        );
        assert_eq!(refusal(&reasons).exit_code(), 2);
    }
}
