use super::*;
use crate::summary::histogram;
use crate::target::Failure;

const S: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn shape(warm_up: u32, duration: u32) -> Shape {
    Shape::closed(1).warm_up(S * warm_up).duration(S * duration)
}

fn took(millis: u32) -> Iteration {
    Iteration {
        timed: MS * millis,
        outcome: Ok(()),
    }
}

fn failed() -> Iteration {
    Iteration {
        timed: Duration::ZERO,
        outcome: Err(Failure::new(Kind::Status(503), "busy")),
    }
}

fn recorder_of(shape: &Shape) -> Recorder {
    Recorder::new(shape, Vec::new())
}

/// An iteration of a closed loop.
fn record(recorder: &mut Recorder, begun: Duration, ended: Duration, iteration: &Iteration) {
    recorder.record(begun, Duration::ZERO, ended, (iteration, 0), &mut |_| {});
}

#[test]
fn the_series_of_six_hours_is_as_long_as_that_of_one_and_loses_nothing() {
    let long = 6 * 3600;
    let mut recorder = recorder_of(&shape(0, long));
    let mut told = 0;
    for second in 0..long {
        let ended = S * second + 500 * MS;
        recorder.record(
            ended - MS,
            Duration::ZERO,
            ended,
            (&took(second % 6 + 1), 0),
            &mut |_| {
                told += 1;
            },
        );
    }
    recorder.advance(S * long, &mut |_| told += 1);
    let summary = recorder.summary(1, 0);
    assert_eq!((told, summary.ok, summary.series.len()), (long, u64::from(long), 3600));
    assert!(
        summary
            .series
            .iter()
            .all(|entry| entry.ok == 6 && entry.length_s == 6.0)
    );
    // Each entry holds 1…6 ms once: its percentiles are those of all its latencies, not means of the seconds'.
    assert!(
        summary
            .series
            .iter()
            .all(|entry| (entry.p50_ms - 3.0).abs() < 0.1 && entry.max_ms > 5.9)
    );
    assert!(
        summary
            .series
            .windows(2)
            .all(|pair| pair[0].start_s + 6.0 == pair[1].start_s)
    );
}

#[test]
fn a_second_in_which_nothing_ends_is_told_as_well() {
    let mut recorder = recorder_of(&shape(2, 3));
    let mut told = Vec::new();
    let mut tell = |second: Second| told.push((second.index, second.warm_up, second.ok));
    recorder.record(Duration::ZERO, Duration::ZERO, 4500 * MS, (&took(4500), 0), &mut tell);
    recorder.advance(S * 9, &mut tell);
    assert_eq!(
        told,
        [(0, true, 0), (1, true, 0), (2, false, 0), (3, false, 0), (4, false, 1)]
    );
    assert!(recorder.boundary().is_none());
    let summary = recorder.summary(1, 0);
    assert_eq!((summary.ok, summary.seconds, summary.cycle_mean_s), (1, 3.0, 4.5));
}

#[test]
fn a_load_that_ends_in_its_warm_up_has_counted_nothing() {
    let mut recorder = recorder_of(&shape(10, 10));
    record(&mut recorder, Duration::ZERO, 1500 * MS, &took(1500));
    recorder.finish(1500 * MS, &mut |_| {});
    let summary = recorder.summary(1, 0);
    assert_eq!((summary.ok, summary.warm_up, summary.throughput), (0, 1, 0.0));
    assert!(summary.plateaus.is_empty(), "none was reached");
    assert!(summary.series.iter().all(|entry| entry.warm_up));
    assert_eq!(summary.series.iter().map(|entry| entry.ok).sum::<u64>(), 1);
}

#[test]
fn failures_are_in_the_cycle_and_not_in_the_latency() {
    let mut recorder = recorder_of(&shape(0, 10));
    record(&mut recorder, Duration::ZERO, 100 * MS, &took(100));
    record(&mut recorder, 100 * MS, 400 * MS, &failed());
    recorder.advance(S * 10, &mut |_| {});
    record(&mut recorder, 400 * MS, 10_001 * MS, &took(9601));
    let summary = recorder.summary(1, 2);
    assert_eq!(
        (summary.ok, summary.failed(), summary.late, summary.abandoned),
        (1, 1, 1, 2)
    );
    assert_eq!(summary.cycle_mean_s, 0.2);
    assert_eq!(summary.latency.max(), histogram().highest_equivalent(100_000));
}

#[test]
fn each_plateau_has_its_own_figures_and_ramps_and_warm_ups_are_in_none() {
    let shape = shape(1, 4).ramp(4.0, S * 2).plateau(4.0).warm_up(S).duration(S * 2);
    let mut recorder = recorder_of(&shape);
    // Ten a second: 10 ms in the first plateau, 20 ms in its warm-up, 1 s in the ramp, 40 ms in the second plateau.
    for tenth in 0..100 {
        let ended = 100 * MS * tenth + 50 * MS;
        let millis = match tenth {
            0..10 => 20,
            10..50 => 10,
            50..70 => 1000,
            _ => 40,
        };
        record(&mut recorder, ended.saturating_sub(MS * millis), ended, &took(millis));
    }
    recorder.advance(S * 10, &mut |_| {});
    let summary = recorder.summary(4, 0);
    let [first, second] = summary.plateaus.as_slice() else {
        panic!("two plateaus, not {}", summary.plateaus.len());
    };
    assert_eq!(
        (first.level, first.warm_up_s, first.seconds, first.ok),
        (1.0, 1.0, 4.0, 40)
    );
    assert_eq!(
        (second.level, second.warm_up_s, second.seconds, second.ok),
        (4.0, 1.0, 2.0, 20)
    );
    assert!((first.latency_ms(1.0) - 10.0).abs() < 0.1 && (second.latency_ms(0.0) - 40.0).abs() < 0.1);
    assert_eq!((first.throughput, second.throughput), (10.0, 10.0));
    assert!((second.little_n() - 0.4).abs() < 1e-9, "{}", second.little_n());
    // The whole is both together, and nothing else.
    assert_eq!((summary.ok, summary.seconds, summary.warm_up), (60, 6.0, 10 + 20 + 10));
    assert_eq!((summary.latency.len(), summary.throughput), (60, 10.0));
    assert!(summary.latency_ms(1.0) < 41.0, "the ramp's second is in no figure");
    let levels: Vec<f64> = summary.series.iter().map(|second| second.level).collect();
    assert_eq!(levels, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.5, 4.0, 4.0, 4.0]);
}

#[test]
fn in_an_open_loop_the_latency_counts_from_the_intended_send_and_the_raw_one_stands_beside_it() {
    let mut recorder = recorder_of(&Shape::open(10.0).duration(S * 10));
    for number in 0..100 {
        let intended = 100 * MS * number;
        // Every fifth waits 300 ms for a slot; the answer itself always takes 5 ms.
        let waited = if number % 5 == 0 { 300 * MS } else { Duration::ZERO };
        let begun = intended + waited;
        recorder.record(begun, waited, intended + 400 * MS, (&took(5), 0), &mut |_| {});
    }
    recorder.advance(S * 20, &mut |_| {});
    let summary = recorder.summary(1, 0);
    let open = summary.open.as_ref().unwrap();
    assert!((open.raw_latency_ms(1.0) - 5.0).abs() < 0.1);
    assert!((summary.latency_ms(0.5) - 5.0).abs() < 0.1 && (summary.latency_ms(0.95) - 305.0).abs() < 1.0);
    assert_eq!(summary.plateaus[0].raw_latency.as_ref().unwrap().len(), summary.ok);
    let read: Summary = serde_json::from_str(&serde_json::to_string(&summary).unwrap()).unwrap();
    assert_eq!(read.open.unwrap().raw_latency, open.raw_latency);
    assert_eq!(read.plateaus[0].raw_latency, summary.plateaus[0].raw_latency);
}

#[test]
fn a_summary_from_before_there_were_plateaus_is_still_read() {
    let mut recorder = recorder_of(&shape(0, 1));
    recorder.advance(S, &mut |_| {});
    let mut old = serde_json::to_value(recorder.summary(1, 0)).unwrap();
    for field in ["plateaus", "parts", "open", "aborted"] {
        old.as_object_mut().unwrap().remove(field).unwrap();
    }
    old["series"][0].as_object_mut().unwrap().remove("level").unwrap();
    let read: Summary = serde_json::from_value(old).unwrap();
    assert!(read.plateaus.is_empty() && read.open.is_none());
}

#[test]
fn the_window_begins_when_it_is_told_to_and_is_as_long_as_it_was_to_be() {
    let shape = shape(1, 3).warm_up_max(S * 20);
    let mut recorder = recorder_of(&shape);
    let mut told = Vec::new();
    recorder.begin_window(2500 * MS, &mut |second: Second| {
        told.push((second.length_s, second.warm_up));
    });
    assert_eq!(told, [(1.0, true), (1.0, true), (0.5, true)]);
    record(&mut recorder, S * 5, 5400 * MS, &took(400));
    record(&mut recorder, 5400 * MS, 5600 * MS, &took(200));
    assert!(recorder.boundary().is_none(), "2.5 s and the window of 3 s");
    let summary = recorder.summary(1, 0);
    assert_eq!((summary.ok, summary.late, summary.seconds), (1, 1, 3.0));
    assert_eq!(summary.plateaus[0].warm_up_s, 2.5);
}

#[test]
fn a_threshold_as_long_as_what_is_judged_is_judged_at_the_end() {
    let errors = crate::limits::Threshold {
        measure: crate::limits::Measure::ErrorShare,
        at_most: 0.1,
        over: S * 3,
    };
    let shape = shape(2, 3).threshold(errors);
    shape.check().unwrap();
    let mut recorder = recorder_of(&shape);
    for ended in 1..500 {
        record(&mut recorder, 10 * MS * (ended - 1), 10 * MS * ended, &failed());
    }
    recorder.advance(S * 5, &mut |_| {});
    let summary = recorder.summary(1, 0);
    let reason = summary.aborted.as_ref().unwrap();
    assert!(reason.contains("iterations failed within 3 s (100.0 %)"), "{reason}");
}

#[test]
fn a_threshold_ends_the_run_at_the_second_that_broke_it_and_says_so() {
    let errors = crate::limits::Threshold {
        measure: crate::limits::Measure::ErrorShare,
        at_most: 0.1,
        over: S * 2,
    };
    let mut recorder = recorder_of(&shape(3, 20).threshold(errors));
    let mut at = Duration::ZERO;
    // Nothing but failures in the warm-up, which is not judged; none for two seconds; then nothing else again.
    while recorder.boundary().is_some() {
        let iteration = if (3000..5000).contains(&at.as_millis()) {
            took(1)
        } else {
            failed()
        };
        record(&mut recorder, at, at + 5 * MS, &iteration);
        at += 10 * MS;
        assert!(at < S * 20, "it goes on");
    }
    let summary = recorder.summary(1, 0);
    let reason = summary.aborted.as_ref().unwrap();
    assert!(
        reason.contains("100 of 200 iterations failed within 2 s (50.0 %)"),
        "{reason}"
    );
    assert_eq!((summary.seconds, summary.plateaus[0].seconds), (3.0, 3.0));
}
