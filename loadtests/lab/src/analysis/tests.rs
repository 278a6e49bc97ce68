//! The analysis on streams made by hand: what is blamed, what is not, and what a cut-off run says.

use std::collections::BTreeMap;

use super::*;
use crate::events::{ActivitySample, LockSample, Phase, Root, RunKey, Sample, Waiter};
use crate::experiment::{ClaimSpec, Expect, Metric};
use crate::results::{Audit, AuditCheck, Cause, Environment, Verdict};

mod staleness;
mod trust;

/// What a stream of one arm is made of.
struct Scripted<'a> {
    arm: &'a str,
    /// One value a round.
    throughput: &'a [f64],
    waiters: usize,
}

pub(crate) fn summary(throughput: f64) -> load::Summary {
    let mut latency = hdrhistogram::Histogram::new_with_bounds(1, 600_000_000, 3).unwrap();
    let ok = (throughput * 10.0) as u64;
    latency.record_n((10.0 / throughput * 1e6) as u64, ok).unwrap();
    load::Summary {
        users: 10,
        ok,
        errors: BTreeMap::new(),
        failures: BTreeMap::new(),
        seconds: 10.0,
        throughput,
        latency,
        cycle_mean_s: 10.0 / throughput,
        generator_cpu_s: 0.1,
        warm_up: 0,
        late: 0,
        abandoned: 0,
        series: Vec::new(),
        plateaus: Vec::new(),
        parts: Vec::new(),
        open: None,
        aborted: None,
    }
}

fn locks(waiters: usize, row: Option<&str>) -> LockSample {
    let count = u32::try_from(waiters).unwrap();
    let waiter = |pid| Waiter {
        pid,
        application: "tour-data-1".into(),
        blocked_by: vec![1],
        root: 1,
        lock_type: "transactionid".into(),
        waited_ms: 400.0,
        statement: "UPDATE tenant_config SET …".into(),
    };
    let root = Root {
        pid: 1,
        application: "tour-data-1".into(),
        state: "idle in transaction".into(),
        wait: "Client/ClientRead".into(),
        transaction_age_ms: 40.0,
        last_statement: "INSERT INTO stop …".into(),
        waiters: count,
        tuple_waiters: 0,
        transactionid_waiters: count,
        longest_wait_ms: 400.0,
        relation: Some("tenant_config".into()),
        row: row.map(str::to_owned),
        waiting_statement: Some("UPDATE tenant_config SET …".into()),
    };
    LockSample {
        waiters: (0..waiters).map(|n| waiter(i32::try_from(n).unwrap() + 2)).collect(),
        roots: if waiters > 0 { vec![root] } else { Vec::new() },
        took_ms: 4.0,
    }
}

fn stream(arms: &[Scripted<'_>], finished: bool) -> Vec<Stamped> {
    let rounds = arms[0].throughput.len();
    let key = |round: usize, arm: &str| RunKey {
        round: u32::try_from(round).unwrap() + 1,
        arm: arm.to_owned(),
    };
    let plan = (0..rounds)
        .flat_map(|round| arms.iter().map(move |arm| key(round, arm.arm)))
        .collect();
    let mut events = vec![Event::RunStarted {
        schema: crate::events::SCHEMA,
        experiment: "made-by-hand".into(),
        question: "?".into(),
        plan,
        duration_s: 10.0,
        warm_up_s: 2.0,
        users: 10,
        environment: Environment::default(),
        manner: crate::events::Manner::default(),
    }];
    for round in 0..rounds {
        for arm in arms {
            let key = key(round, arm.arm);
            events.push(Event::ArmStarted {
                key: key.clone(),
                changes: vec!["a=b".into()],
            });
            events.push(Event::Phase {
                key: key.clone(),
                phase: Phase::Load,
            });
            // A sample of the warm-up that must not count, then two that do; one of them cannot name the row.
            let early = Sample::Locks(locks(9, Some("id=99")));
            events.push(Event::Sample {
                key: key.clone(),
                t_s: 1.0,
                sample: early,
            });
            for (t_s, row) in [(3.0, Some("id=1, tenant_key=BEHNGT")), (6.0, None)] {
                let sample = Sample::Locks(locks(arm.waiters, row));
                events.push(Event::Sample {
                    key: key.clone(),
                    t_s,
                    sample,
                });
                let waits = BTreeMap::from([("Client/ClientRead".to_owned(), 10)]);
                let activity = ActivitySample {
                    waits,
                    backends: 10,
                    ..ActivitySample::default()
                };
                events.push(Event::Sample {
                    key: key.clone(),
                    t_s,
                    sample: Sample::Activity(activity),
                });
            }
            events.push(Event::Load {
                key: key.clone(),
                load: Box::new(summary(arm.throughput[round])),
            });
            events.push(Event::Audit {
                key,
                audit: Audit {
                    passed: true,
                    ..Audit::default()
                },
            });
        }
    }
    if finished {
        events.push(Event::RunFinished { completed: true });
    }
    events.into_iter().map(|event| Stamped { at_ms: 0, event }).collect()
}

fn experiment(arms: &[Scripted<'_>], claims: Vec<ClaimSpec>) -> Experiment {
    let mut experiment = Experiment::find("row-lock-demo").unwrap();
    let pattern = experiment.arms[0].clone();
    experiment.arms = arms
        .iter()
        .map(|arm| crate::experiment::Arm {
            name: arm.arm.to_owned(),
            ..pattern.clone()
        })
        .collect();
    experiment.claims = claims;
    experiment
}

fn claim(metric: Metric, arms: &[&str], expect: Expect, value: f64) -> ClaimSpec {
    let mut claim = Experiment::find("row-lock-demo").unwrap().claims[0].clone();
    claim.metric = metric;
    claim.arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
    claim.expect = expect;
    claim.value = Some(value);
    claim.row = Some("tenant_config".into());
    claim
}

fn run(arms: &[Scripted<'_>], claims: Vec<ClaimSpec>) -> Results {
    analyse(&experiment(arms, claims), &stream(arms, true)).unwrap()
}

#[test]
fn a_queue_for_one_row_is_blamed_on_the_row_and_its_holder_waits_for_its_client() {
    let results = run(
        &[Scripted {
            arm: "first",
            throughput: &[11.0, 11.2, 10.9, 11.1],
            waiters: 9,
        }],
        vec![claim(Metric::BlamedRow, &["first"], Expect::Is, 0.0)],
    );
    let arm = &results.arms[0];
    assert_eq!(arm.bottleneck.cause, Cause::RowLock);
    assert!(
        arm.bottleneck.text.contains("tenant_config (id=1, tenant_key=BEHNGT)"),
        "{}",
        arm.bottleneck.text
    );
    assert!(
        arm.bottleneck.text.contains("across round trips"),
        "{}",
        arm.bottleneck.text
    );
    assert_eq!(
        arm.locks.rows.len(),
        1,
        "the unnamed sample counts for the named row: {:?}",
        arm.locks.rows
    );
    assert_eq!((arm.locks.samples, arm.locks.waiters_max), (8, 9));
    assert_eq!(results.claims[0].verdict, Verdict::Reproduced);
    assert!(results.completed, "{:?}", results.failures);
}

#[test]
fn without_waiters_no_row_is_blamed() {
    let results = run(
        &[Scripted {
            arm: "none",
            throughput: &[90.0, 91.0, 92.0, 93.0],
            waiters: 0,
        }],
        vec![
            claim(Metric::BlamedRow, &["none"], Expect::Is, 0.0),
            claim(Metric::BlamedRow, &["none"], Expect::IsNot, 0.0),
        ],
    );
    assert_eq!(results.arms[0].bottleneck.cause, Cause::NoneFound);
    assert!(!results.arms[0].bottleneck.text.contains("tenant_config"));
    let verdicts: Vec<_> = results.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::NotReproduced, Verdict::Reproduced]);
}

#[test]
fn a_few_waiters_among_ten_busy_sessions_are_no_queue() {
    let results = run(
        &[Scripted {
            arm: "last",
            throughput: &[90.0; 4],
            waiters: 2,
        }],
        Vec::new(),
    );
    assert_eq!(results.arms[0].bottleneck.cause, Cause::NoneFound);
}

#[test]
fn what_lies_outside_the_timed_part_and_what_the_generator_used_can_be_claimed() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[11.0, 11.2, 10.9, 11.1],
        waiters: 0,
    }];
    let results = run(
        &arms,
        vec![
            // In the summary made by hand a request takes the whole cycle.
            claim(Metric::CycleOverP95, &["one"], Expect::Near, 1.0),
            claim(Metric::GeneratorCpu, &["one"], Expect::AtLeast, 0.7),
        ],
    );
    let verdicts: Vec<Verdict> = results.claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Reproduced, Verdict::NotReproduced]);
    assert!((results.claims[1].measured.unwrap() - 0.01).abs() < 1e-9);
}

#[test]
fn the_drain_is_timed_and_a_preset_that_is_not_in_force_is_told() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[11.0],
        waiters: 0,
    }];
    let mut events = stream(&arms, true);
    let key = RunKey {
        round: 1,
        arm: "one".into(),
    };
    let told = "shared_buffers should be 1GB and is 128MB".to_owned();
    let late = [
        (
            0,
            Event::Preset {
                key: key.clone(),
                not_in_force: vec![told.clone()],
            },
        ),
        (
            1_000,
            Event::Phase {
                key: key.clone(),
                phase: Phase::Drain,
            },
        ),
        (
            4_500,
            Event::Phase {
                key,
                phase: Phase::Audit,
            },
        ),
    ];
    events.extend(late.map(|(at_ms, event)| Stamped { at_ms, event }));
    let results = analyse(&experiment(&arms, Vec::new()), &events).unwrap();
    assert_eq!(results.arms[0].drain_s, 3.5);
    assert_eq!(results.arms[0].not_in_force, [told]);
}

#[test]
fn claims_need_four_rounds_and_ratios_are_paired() {
    let arms = |rounds: usize| {
        [
            Scripted {
                arm: "one",
                throughput: &[10.0, 11.0, 9.0, 10.0][..rounds],
                waiters: 9,
            },
            Scripted {
                arm: "two",
                throughput: &[10.1, 11.3, 9.0, 10.2][..rounds],
                waiters: 9,
            },
        ]
    };
    let claims = || vec![claim(Metric::Throughput, &["two", "one"], Expect::AtMost, 1.1)];
    let four = run(&arms(4), claims());
    assert_eq!(four.claims[0].verdict, Verdict::Reproduced, "{:?}", four.claims[0]);
    assert!(
        (four.comparisons[0].throughput_ratio - 1.014).abs() < 0.002,
        "{:?}",
        four.comparisons[0]
    );
    assert!(four.comparisons[0].ci95.is_some());
    let three = run(&arms(3), claims());
    assert_eq!(three.claims[0].verdict, Verdict::Inconclusive);
    assert!(
        three.claims[0].note.contains("3 of at least 4 rounds"),
        "{}",
        three.claims[0].note
    );
}

#[test]
fn a_run_that_was_cut_off_says_what_is_missing() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[10.0, 10.0],
        waiters: 9,
    }];
    let mut events = stream(&arms, false);
    let last_load = events
        .iter()
        .rposition(|stamped| matches!(stamped.event, Event::Load { .. }))
        .unwrap();
    events.truncate(last_load);
    let results = analyse(&experiment(&arms, Vec::new()), &events).unwrap();
    assert!(!results.completed);
    assert!(
        results.failures.iter().any(|why| why.contains("1 of 2 planned")),
        "{:?}",
        results.failures
    );
    assert_eq!(results.arms[0].throughput.rounds, [10.0]);
}

#[test]
fn a_violated_invariant_is_a_failure_that_names_it() {
    let arms = [Scripted {
        arm: "one",
        throughput: &[10.0],
        waiters: 9,
    }];
    let mut events = stream(&arms, true);
    for stamped in &mut events {
        if let Event::Audit { audit, .. } = &mut stamped.event {
            let check = AuditCheck {
                name: "rows-per-tour".into(),
                says: "no tour has other rows".into(),
                passed: false,
                violations: 3,
                examples: vec!["tour 1: 86 rows".into()],
            };
            *audit = Audit {
                passed: false,
                checks: vec![check],
                ..Audit::default()
            };
        }
    }
    let results = analyse(&experiment(&arms, Vec::new()), &events).unwrap();
    assert!(!results.completed);
    assert_eq!(
        results.failures[0],
        "AUDIT of `one`: no tour has other rows (3 violations: tour 1: 86 rows)"
    );
}
