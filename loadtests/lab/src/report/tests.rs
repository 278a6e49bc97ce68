//! The report on a run made by hand: complete, self-contained, and safe against what is in it.

use std::collections::BTreeMap;

use super::*;
use crate::analysis::tests::summary;
use crate::events::{Event, LockSample, RunKey, Sample};
use crate::results::{
    Arm, Audit, AuditCheck, Bottleneck, Cause, CheckId, Claim, Comparison, Curve, CurvePoint, DeadlockKind,
    DeadlockPlace, Deadlocks, Environment, FaultResult, Hold, Knee, LastChange, Latency, Little, LockedRow, Locks,
    NoiseFloor, Open, PreflightCheck, Scalability, Staleness, Throughput, UslFit, Versions, WarmUps,
};

mod found;
mod trust;

fn arm(name: &str, throughput: f64) -> Arm {
    Arm {
        name: name.to_owned(),
        changes: vec!["TOUR_DATA_TOUCH=update-last".into()],
        gives_up: vec!["touch update-last: the order of `modified_at`".into()],
        users: 10,
        not_in_force: Vec::new(),
        throughput: Throughput {
            mean: throughput,
            rounds: vec![throughput; 4],
            ci95: Some([throughput - 1.0, throughput + 1.0]),
        },
        latency_ms: Latency {
            p50: 800.0,
            p95: 1200.0,
            p99: 1500.0,
            max: 1700.0,
            mean: 850.0,
        },
        p95_rounds_ms: vec![1200.0; 4],
        errors: BTreeMap::new(),
        requests: 100,
        locks: Locks {
            samples: 8,
            samples_with_waiters: 8,
            waiters_mean: 8.9,
            waiters_max: 9,
            tuple_waiters: 5,
            transactionid_waiters: 66,
            rows: vec![LockedRow {
                relation: "tenant_config".into(),
                row: Some("id=1, tenant_key=BEHNGT".into()),
                share: 1.0,
                statement: "UPDATE tenant_config …".into(),
            }],
            holder_waits: BTreeMap::from([("Client/ClientRead".to_owned(), 0.9)]),
        },
        rtt_asked_ms: 1.0,
        rtt_ms: 1.02,
        little_n: 9.9,
        little: Some(Little {
            worst: -0.031,
            flagged: 1,
            measurements: 4,
            cause: Some("the window is short".into()),
        }),
        open: None,
        deadlocks: Some(Deadlocks {
            count: 3,
            kinds: vec![DeadlockKind {
                count: 2,
                waited_ms: Some(1000.6),
                circle: ["ShareLock on transaction", "ExclusiveLock on tuple of tenant_config"]
                    .map(|lock| DeadlockPlace {
                        statement: "UPDATE t SET a = $1 WHERE a < $2".into(),
                        waits_for: lock.into(),
                    })
                    .into(),
                why: "Each holds what the other wants.".into(),
                remedy: "One order.".into(),
            }],
        }),
        versions: Some(Versions {
            snapshot_age: 4000,
            relation: "tenant_config".into(),
            bytes: 3_900_000,
        }),
        hold: Some(Hold {
            count: 100,
            mean_ms: 80.0,
            p95_ms: 95.0,
            max_ms: 120.0,
            unmeasured: 0,
            rows: 1,
            ceiling_per_s: 12.5,
        }),
        generator_cpu: 0.02,
        processes: BTreeMap::new(),
        queue_max: 0,
        drain_s: 0.3,
        hot_ratio: Some(0.99),
        pool_use_max: 1.0,
        preflight: vec![PreflightCheck {
            id: CheckId::QueueEmpty,
            ok: true,
            says: "0 messages in <2> queues".into(),
        }],
        warm_up: Some(WarmUps {
            seconds: vec![2.0, 3.5],
            steady: false,
            says: vec!["still rising".into()],
        }),
        audit: Audit {
            passed: false,
            checks: vec![AuditCheck {
                name: "rows-per-tour".into(),
                says: "Every tour has its rows.".into(),
                passed: false,
                violations: 2,
                examples: vec!["tour <7>: 86 rows".into()],
            }],
            judged_reads: 70,
            ..Audit::default()
        },
        staleness: Some(Staleness {
            promised: "coarse(1000ms)".into(),
            changes: 20,
            p50_ms: 4.0,
            max_ms: 31.0,
            under_load_max_ms: 190.0,
            modified_at_p50_ms: Some(420.0),
            modified_at_max_ms: Some(990.0),
        }),
        faults: vec![FaultResult {
            kind: "kill".into(),
            target: "postgres".into(),
            recovery_s: 0.25,
            longest_gap_s: 1.75,
            acknowledged: 1,
            repeated: 16,
        }],
        last_changes: vec![LastChange {
            kind: "kill".into(),
            target: "tour-data".into(),
            answered_s: 0.5,
            seen_s: None,
        }],
        bottleneck: Bottleneck {
            cause: Cause::RowLock,
            text: "One row.".into(),
        },
    }
}

pub(crate) fn results() -> Results {
    Results {
        schema: crate::results::SCHEMA,
        experiment: "replica-scaling".into(),
        question: "Is a < b & c?".into(),
        published: Some("create-tour".into()),
        environment: Environment::default(),
        rounds: 4,
        users: 10,
        duration_s: 5.0,
        arms: vec![arm("1 replica, untuned", 11.0), arm("1 replica, tuned", 12.0)],
        refused: Vec::new(),
        comparisons: vec![Comparison {
            arm: "1 replica, tuned".into(),
            against: "1 replica, untuned".into(),
            throughput_ratio: 1.09,
            ci95: Some([1.01, 1.17]),
            p95_ratio: 0.9,
            p95_paired_ratio: Some(0.92),
            p95_ci95: Some([0.85, 0.99]),
            throughput_beyond_noise: Some(true),
            p95_beyond_noise: Some(false),
        }],
        noise_floor: Some(NoiseFloor {
            arm: "1 replica, untuned (again)".into(),
            against: "1 replica, untuned".into(),
            throughput_ratio: 1.01,
            throughput_ci95: Some([0.97, 1.05]),
            p95_ratio: 0.98,
            p95_ci95: Some([0.88, 1.09]),
        }),
        curves: vec![curve()],
        claims: vec![Claim {
            text: "It <b>holds</b>".into(),
            figure: None,
            published: Some(1.32),
            measured: Some(1.09),
            ci95: Some([1.01, 1.17]),
            verdict: Verdict::NotReproduced,
            must: true,
            note: "at least 1.2".into(),
        }],
        completed: false,
        failures: vec!["rows-per-tour is violated".into()],
    }
}

fn curve() -> Curve {
    let point = |x: f64, throughput: f64| CurvePoint {
        arm: format!("{x} users"),
        x,
        throughput,
        ci95: Some([throughput - 0.5, throughput + 0.5]),
        p95_ms: 100.0,
        ceiling_per_s: Some(12.5),
    };
    Curve {
        title: "Throughput over users".into(),
        x_label: "users".into(),
        points: vec![point(1.0, 8.0), point(2.0, 11.0), point(4.0, 11.5), point(8.0, 11.6)],
        knee: Knee {
            x: Some(2.0),
            says: "Knee at 2.".into(),
        },
        scalability: Scalability {
            fit: Some(UslFit {
                lambda: 8.0,
                sigma: 0.6,
                kappa: 0.01,
                lambda_ci95: None,
                sigma_ci95: None,
                kappa_ci95: None,
                peak: Some(6.3),
                peak_ci95: None,
                worst_residual: 0.03,
            }),
            says: "Contention σ = 0.6.".into(),
        },
    }
}

/// A stream of `seconds` seconds of load.
fn events(seconds: u64) -> Vec<Stamped> {
    let key = RunKey {
        round: 1,
        arm: "1 replica, tuned".into(),
    };
    let mut events = vec![Event::ArmStarted {
        key: key.clone(),
        changes: Vec::new(),
    }];
    for index in 0..seconds {
        let second = load::Second {
            index,
            start_s: index as f64,
            length_s: 1.0,
            warm_up: false,
            level: 10.0,
            ok: 11,
            errors: BTreeMap::new(),
            p50_ms: 1.0,
            p95_ms: 1.0,
            max_ms: 1.0,
        };
        events.push(Event::Second {
            key: key.clone(),
            second,
        });
        let sample = Sample::Locks(LockSample::default());
        events.push(Event::Sample {
            key: key.clone(),
            t_s: index as f64,
            sample,
        });
    }
    events.push(Event::Load {
        key,
        load: Box::new(summary(11.0)),
    });
    events.into_iter().map(|event| Stamped { at_ms: 0, event }).collect()
}

fn pages(seconds: u64) -> (String, String) {
    let experiment = Experiment::find("replica-scaling").unwrap();
    let published = Published::find("create-tour").unwrap();
    let results = results();
    let html = html::render(&experiment, &results, Some(&published), &events(seconds)).unwrap();
    (html, markdown::render(&experiment, &results, Some(&published)))
}

#[test]
fn few_arms_stand_side_by_side_and_many_are_ranked_with_what_each_gives_up() {
    let experiment = Experiment::find("replica-scaling").unwrap();
    let mut results = results();
    assert!(!markdown::render(&experiment, &results, None).contains("## Ranking"));
    assert!(
        terminal_table(&results)
            .lines()
            .nth(1)
            .is_some_and(|head| head.contains("1 replica, tuned"))
    );

    results.arms = (1..=8)
        .map(|rank| arm(&format!("fix {rank}"), f64::from(rank)))
        .collect();
    results.comparisons.clear();
    let terminal = terminal_table(&results);
    let at = |name: &str| terminal.find(name).expect("it is listed");
    assert!(at("fix 8") < at("fix 7") && at("fix 2") < at("fix 1"), "{terminal}");
    assert!(
        terminal.contains("touch update-last: the order of `modified_at`"),
        "{terminal}"
    );
    let text = markdown::render(&experiment, &results, None);
    assert!(text.contains("## Ranking") && text.contains("## Arms"), "{text}");
    let page = html::render(&experiment, &results, None, &[]).expect("a page");
    assert!(page.contains("<h2>Ranking</h2>"));
}

#[test]
fn the_page_is_self_contained_and_escapes_what_it_shows() {
    let (html, _) = pages(60);
    assert_eq!(
        html.matches("<figure><svg").count(),
        6,
        "throughput, latency, ceiling, curve, time line, waits"
    );
    for outside in ["<script", "src=", "href=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside} in the page");
    }
    assert!(html.contains("Is a &lt; b &amp; c?") && html.contains("It &lt;b&gt;holds"));
    assert!(html.contains("tour &lt;7&gt;: 86 rows"));
}

#[test]
fn the_page_stays_under_a_megabyte_however_long_the_run() {
    let (html, _) = pages(100_000);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}

#[test]
fn published_stands_beside_measured_and_what_cannot_hold_says_why() {
    let (html, markdown) = pages(10);
    assert!(
        markdown.contains("| 1 replica, untuned | throughput | 1.72 | 11.00 |  |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| 1 replica, tuned | p95 | 3650.00 | 1200.00 | cannot hold: 10 users"),
        "{markdown}"
    );
    assert!(html.contains("<b>cannot hold</b>"));
}

#[test]
fn a_failed_gate_cannot_be_overlooked() {
    let (html, markdown) = pages(10);
    assert!(html.contains(r#"<p class="failed">rows-per-tour is violated"#));
    assert!(markdown.contains("> **Failed:** rows-per-tour is violated"));
    let table = terminal_table(&results());
    assert!(table.contains("FAILED") && table.contains("rows-per-tour"), "{table}");
    assert!(table.contains("1.09x (1.01 … 1.17)"), "{table}");
}

#[test]
fn recoveries_are_listed_and_a_loss_that_was_declared_is_said_to_have_been_bought() {
    let experiment = Experiment::find("row-lock-demo").unwrap();
    let mut results = results();
    let quiet = markdown::render(&experiment, &results, None);
    assert!(quiet.contains("| kill postgres | 0.25 | 1.75 | 16 |"), "{quiet}");
    assert!(!quiet.contains("durability"), "{quiet}");
    results.arms[1].audit.may_lose_ms = 600;
    results.arms[1].audit.declared_losses = 3;
    let bought = markdown::render(&experiment, &results, None);
    assert!(
        bought.contains("last 600 ms") && bought.contains("Declared loss: 3."),
        "{bought}"
    );
    assert!(terminal_table(&results).contains("declared loss"));
}

#[test]
fn how_late_readers_were_stands_beside_what_was_promised_to_them_and_what_was_lost_as_declared_is_counted() {
    let experiment = Experiment::find("row-lock-demo").unwrap();
    let mut results = results();
    results.arms[1].staleness = None;
    let audit = &mut results.arms[1].audit;
    (audit.lost_messages, audit.older_reads) = (12, 3);
    let markdown = markdown::render(&experiment, &results, None);
    for row in [
        "| promised to readers | coarse(1000ms) | – |",
        "| reads held to it | 70 | – |",
        "| change not seen for ms: p50, max | 4, 31 (20 changes, under load at least 190) | – |",
        "| modifiedAt behind ms: p50, max | 420, 990 | – |",
        "| declared loss | none | 12 messages; 3 reads of older values |",
    ] {
        assert!(markdown.contains(row), "{row}\n{markdown}");
    }
}
