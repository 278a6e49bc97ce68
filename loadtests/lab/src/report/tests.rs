//! The report on a run made by hand: complete, self-contained, and safe against what is in it.

use std::collections::BTreeMap;

use super::*;
use crate::analysis::tests::summary;
use crate::events::{Event, LockSample, RunKey, Sample};
use crate::results::{
    Arm, Audit, AuditCheck, Bottleneck, Cause, CheckId, Claim, Comparison, Curve, CurvePoint, Environment, FaultResult,
    Hold, Knee, Latency, Little, LockedRow, Locks, NoiseFloor, Open, PreflightCheck, Scalability, Throughput, UslFit,
    WarmUps,
};

fn arm(name: &str, throughput: f64) -> Arm {
    Arm {
        name: name.to_owned(),
        changes: vec!["TOUR_DATA_TOUCH=update-last".into()],
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
        hold: Some(Hold {
            count: 100,
            mean_ms: 80.0,
            p95_ms: 95.0,
            max_ms: 120.0,
            unmeasured: 0,
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
            ..Audit::default()
        },
        faults: vec![FaultResult {
            kind: "kill".into(),
            target: "postgres".into(),
            recovery_s: 0.25,
            longest_gap_s: 1.75,
            acknowledged: 1,
            repeated: 16,
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
fn the_page_is_self_contained_and_escapes_what_it_shows() {
    let (html, _) = pages(60);
    assert_eq!(
        html.matches("<figure><svg").count(),
        5,
        "throughput, latency, curve, time line, waits"
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
fn the_curve_shows_what_was_measured_the_law_and_the_predicted_ceiling() {
    let (html, markdown) = pages(10);
    assert!(markdown.contains("## Throughput over users"), "{markdown}");
    assert!(
        markdown.contains("| 8 | 8 users | 11.60 | 11.10 … 12.10 | 11.11 | 12.50 | 100 |"),
        "{markdown}"
    );
    for drawn in [
        "ceiling, 1 / hold time",
        "Universal Scalability",
        "Knee at 2.",
        "Contention σ = 0.6.",
    ] {
        assert!(html.contains(drawn), "{drawn}");
    }
    assert!(
        markdown.contains("| hold of the hot row ms | 80 (p95 95, 100 holds) |"),
        "{markdown}"
    );
    assert!(markdown.contains("12.5 (measured: 88 % of it)"), "{markdown}");
}

#[test]
fn what_was_looked_at_before_a_measurement_and_how_it_began_is_told() {
    let (html, markdown) = pages(10);
    assert!(
        html.contains("<td>queue-empty</td><td>yes</td><td>0 messages in &lt;2&gt; queues"),
        "{html}"
    );
    assert!(
        markdown.contains("| queue-empty | yes | 0 messages in <2> queues |"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| warm-up s | 2.0, 3.5; not steady: still rising |"),
        "{markdown}"
    );
}

#[test]
fn an_open_loop_shows_both_latencies_and_every_send_that_was_not_made_as_asked() {
    let mut results = results();
    results.arms[0].open = Some(Open {
        asked_rate: 12.0,
        sent: 240,
        late: 7,
        dropped: 2,
        skipped: 1,
        send_lag_p99_ms: 1.5,
        generator_limited: true,
        raw_latency_ms: Latency {
            p95: 300.0,
            ..results.arms[0].latency_ms
        },
    });
    let table = terminal_table(&results);
    assert!(table.contains("300") && table.contains("dropped"), "{table}");
    let experiment = Experiment::find("replica-scaling").unwrap();
    let text = markdown::render(&experiment, &results, None);
    for told in [
        "| 800, 300, 1500, 1700 | – |",
        "| 240 at 12.0/s; 7 late, 2 dropped, 1 skipped | – |",
        "| 1.50 (GENERATOR-LIMITED) | – |",
        "| 9.9 under way | 9.9 of 10; 1 of 4",
    ] {
        assert!(text.contains(told), "{told} in {text}");
    }
}

#[test]
fn the_noise_floor_and_a_departure_from_littles_law_stand_beside_the_figures() {
    let (html, markdown) = pages(10);
    for text in [&html, &markdown] {
        assert!(text.contains("throughput differs by 1.01x (0.97 … 1.05)"), "{text}");
        assert!(text.contains("throughput yes, p95 no"), "{text}");
        assert!(
            text.contains("1 of 4 measurements off by more than 2 %, most by -3.1 %"),
            "{text}"
        );
    }
    assert!(markdown.contains("0.92x (0.85 … 0.99)"), "{markdown}");
    let table = terminal_table(&results());
    assert!(
        table.contains("Little's law is off by -3.1 %: the window is short"),
        "{table}"
    );
}

#[test]
fn results_from_before_the_newer_fields_are_still_read_and_shown() {
    let mut old = serde_json::to_value(results()).unwrap();
    for field in ["published", "noise_floor", "curves", "refused"] {
        old.as_object_mut().unwrap().remove(field);
    }
    for arm in old["arms"].as_array_mut().unwrap() {
        for field in ["p95_rounds_ms", "little", "hold", "open", "preflight", "warm_up"] {
            arm.as_object_mut().unwrap().remove(field);
        }
    }
    for field in [
        "p95_paired_ratio",
        "p95_ci95",
        "throughput_beyond_noise",
        "p95_beyond_noise",
    ] {
        old["comparisons"][0].as_object_mut().unwrap().remove(field);
    }
    old["claims"][0].as_object_mut().unwrap().remove("figure");
    let old: Results = serde_json::from_value(old).unwrap();
    let experiment = Experiment::find("replica-scaling").unwrap();
    let text = markdown::render(&experiment, &old, None);
    assert!(text.contains("9.9 of 10") && !text.contains("Noise floor"), "{text}");
}
