//! The loops over targets that do no I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use load::{Failure, Handle, Iteration, Kind, LoadError, Measure, Shape, Spacing, Summary, Target, Threshold};

use crate::support::{MS, Sleeper, closed, errors, limited, run};

#[tokio::test]
async fn a_load_of_which_enough_was_seen_ends_early_with_a_result() {
    let (target, done) = Sleeper::of(MS);
    let handle = Handle::default();
    let enough = async {
        while done.load(Ordering::Relaxed) < 50 {
            tokio::time::sleep(MS).await;
        }
        handle.stop();
    };
    let shape = closed(4, Duration::from_secs(600));
    let load = load::run_with(Arc::new(target), &shape, &handle, |_| {});
    let summary = tokio::join!(load, enough).0.unwrap();
    assert_eq!(summary.ok, done.load(Ordering::Relaxed), "what was begun is counted");
    assert!(
        summary.ok >= 50 && summary.seconds < 600.0,
        "{} in {} s",
        summary.ok,
        summary.seconds
    );
}

#[tokio::test]
async fn a_limit_of_iterations_is_met_exactly_and_ends_the_load() {
    let (target, done) = Sleeper::of(MS);
    let summary = run(target, &limited(7, 1000)).await;
    assert_eq!((summary.ok, done.load(Ordering::Relaxed)), (1000, 1000));
    assert_eq!(summary.series.iter().map(|second| second.ok).sum::<u64>(), 1000);
    assert!(
        summary.seconds < 60.0,
        "the window ends with the last iteration, not at {} s",
        summary.seconds
    );
    assert!((summary.throughput - 1000.0 / summary.seconds).abs() < 1e-6);
    assert_eq!((summary.warm_up, summary.late, summary.abandoned), (0, 0, 0));
}

#[tokio::test]
async fn what_ends_in_the_warm_up_or_after_the_window_is_not_counted() {
    let (target, done) = Sleeper::of(30 * MS);
    let shape = closed(4, 1000 * MS).warm_up(500 * MS);
    let mut seconds = Vec::new();
    let summary = load::run(Arc::new(target), &shape, |second| seconds.push(second.clone()))
        .await
        .unwrap();
    assert!(summary.warm_up > 0 && summary.ok > 0);
    assert_eq!(
        done.load(Ordering::Relaxed),
        summary.warm_up + summary.ok + summary.late
    );
    assert!((summary.seconds - 1.0).abs() < 1e-9);
    let of_phase = |warm_up| summary.series.iter().filter(move |second| second.warm_up == warm_up);
    assert_eq!(of_phase(true).map(|second| second.ok).sum::<u64>(), summary.warm_up);
    assert_eq!(of_phase(false).map(|second| second.ok).sum::<u64>(), summary.ok);
    let times: Vec<_> = seconds
        .iter()
        .map(|second| (second.index, second.start_s, second.length_s))
        .collect();
    assert_eq!(times, [(0, 0.0, 0.5), (1, 0.5, 1.0)]);
}

#[tokio::test]
async fn a_system_that_is_slow_against_the_window_is_measured_without_bias() {
    let (target, _) = Sleeper::of(250 * MS);
    let shape = closed(10, 1250 * MS).warm_up(400 * MS);
    let summary = run(target, &shape).await;
    // Ten users, five ends each; a late timer may push one end of each out of the window.
    assert!((40..=50).contains(&summary.ok), "{}", summary.ok);
}

#[tokio::test]
async fn littles_law_holds() {
    let (target, _) = Sleeper::of(20 * MS);
    let summary = run(target, &closed(20, 2000 * MS).think(10 * MS)).await;
    assert!((17.0..=21.0).contains(&summary.little_n()), "{}", summary.little_n());
    assert!(summary.generator_cpu_s < summary.seconds);
}

#[tokio::test]
async fn users_pause_between_iterations() {
    let (target, done) = Sleeper::of(Duration::ZERO);
    run(target, &closed(1, 1000 * MS).think(50 * MS)).await;
    let done = done.load(Ordering::Relaxed);
    assert!(
        (2..=20).contains(&done),
        "{done} iterations in a second with a pause of 50 ms"
    );
}

/// Claims a latency of its own for each iteration, without waiting for it.
struct Claimed {
    latencies: Vec<Duration>,
    next: AtomicUsize,
}

impl Target for Claimed {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        tokio::task::yield_now().await;
        let timed = self.latencies[self.next.fetch_add(1, Ordering::Relaxed)];
        Iteration { timed, outcome: Ok(()) }
    }
}

#[tokio::test]
async fn percentiles_agree_with_a_sorted_list() {
    // Log-uniform from 20 µs to 20 s, in no order.
    let count = 20_000_u64;
    let latency = |i: u64| {
        let position = (i * 7919 % count) as f64 / count as f64;
        Duration::from_micros((20.0 * 10_f64.powf(6.0 * position)) as u64)
    };
    let latencies: Vec<Duration> = (0..count).map(latency).collect();
    let mut sorted = latencies.clone();
    sorted.sort();
    let target = Claimed {
        latencies,
        next: AtomicUsize::new(0),
    };
    let summary = run(target, &limited(3, count)).await;
    let read: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(read.latency, summary.latency);
    for quantile in [0.0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
        let rank = ((quantile * count as f64).ceil() as usize).max(1);
        let exact = sorted[rank - 1].as_secs_f64() * 1e3;
        for measured in [summary.latency_ms(quantile), read.latency_ms(quantile)] {
            assert!(
                (measured / exact - 1.0).abs() < 0.002,
                "{quantile}: {measured} ms, exactly {exact} ms"
            );
        }
    }
}

/// Fails at once: first to make a user, then in each iteration.
struct Broken {
    refusals: AtomicU64,
}

impl Target for Broken {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        if self.refusals.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err(Failure::new(Kind::Connect, "not yet"));
        }
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        Iteration {
            timed: Duration::ZERO,
            outcome: Err(Failure::new(Kind::Other("conflict"), "x".repeat(10_000))),
        }
    }
}

#[tokio::test]
async fn failures_are_counted_by_kind_and_the_loop_does_not_spin_on_them() {
    let summary = run(
        Broken {
            refusals: AtomicU64::new(0),
        },
        &closed(1, 1000 * MS),
    )
    .await;
    assert_eq!(summary.ok, 0);
    assert_eq!(summary.errors["connect"], 2);
    let conflicts = summary.errors["conflict"];
    assert!((1..=100).contains(&conflicts), "{conflicts} attempts in a second");
    assert_eq!(summary.failures["connect"], "not yet");
    assert_eq!(summary.failures["conflict"].len(), 400, "a long text is cut");
    assert_eq!(errors(&summary).len(), 2);
}

#[tokio::test]
async fn a_dropped_run_stops() {
    let (target, done) = Sleeper::of(MS);
    let shape = closed(2, Duration::from_secs(3600));
    let mut seconds = 0;
    let running = load::run(Arc::new(target), &shape, |_| seconds += 1);
    assert!(tokio::time::timeout(300 * MS, running).await.is_err());
    // The engine has its own thread and needs a moment; then the counter stands still.
    let mut last = u64::MAX;
    for _ in 0..200 {
        let now = done.load(Ordering::Relaxed);
        if now == last {
            return;
        }
        last = now;
        tokio::time::sleep(50 * MS).await;
    }
    panic!("the load goes on after its run was dropped");
}

struct Panicking;

impl Target for Panicking {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        panic!("a target that is wrong");
    }
}

#[tokio::test]
async fn a_panic_in_a_target_ends_the_run_without_a_result() {
    let result = load::run(Arc::new(Panicking), &closed(3, 1000 * MS), |_| {}).await;
    assert!(matches!(result, Err(LoadError::Panicked)));
}

/// Three seconds after a warm-up of five, with a threshold that looks back at so many.
fn judged_over(seconds: u64) -> Shape {
    let threshold = Threshold {
        measure: Measure::ErrorShare,
        at_most: 0.05,
        over: Duration::from_secs(seconds),
    };
    closed(1, 3000 * MS).warm_up(5000 * MS).threshold(threshold)
}

#[tokio::test]
async fn shapes_that_make_no_sense_are_refused() {
    for (shape, reason) in [
        (closed(0, MS), "belong to a plateau"),
        (Shape::closed(0).ramp(5.0, MS), "needs a plateau"),
        (closed(1, Duration::ZERO), "more than 0"),
        (closed(1, Duration::from_secs(100_000)), "at most 86400 s"),
        (limited(1, 0), "0 iterations"),
        (Shape::closed(1).plateau(1.5), "not 1.5"),
        (Shape::closed(1).spacing(Spacing::Constant), "for an open loop"),
        (Shape::open(10.0).think(MS), "for a closed loop"),
        (Shape::open(-1.0), "not -1"),
        (Shape::open(1.0).in_flight_max(0), "not 0"),
        (
            closed(1, MS).warm_up(2 * MS).warm_up_max(MS),
            "at least 2ms and at most 1ms",
        ),
        (
            judged_over(4),
            "looks back at 4 s, and without its first warm-up the load lasts 3 s",
        ),
    ] {
        let error = load::run(Arc::new(Panicking), &shape, |_| {})
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
}
