//! The open loop: intended and actual sends, and what becomes of those that find no slot.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use load::{AbortBelow, Failure, Iteration, Shape, Spacing, Target};

use crate::support::{MS, Sleeper, run};

/// Answers at once, but not in the first part of each period.
struct Stalling {
    start: Instant,
    stall: Duration,
    period: Duration,
}

impl Target for Stalling {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        let begun = Instant::now();
        let phase = (begun - self.start).as_nanos() % self.period.as_nanos();
        let left = self.stall.as_nanos().saturating_sub(phase);
        tokio::time::sleep(Duration::from_nanos(u64::try_from(left).unwrap())).await;
        Iteration {
            timed: begun.elapsed(),
            outcome: Ok(()),
        }
    }
}

#[tokio::test]
async fn a_stall_is_charged_for_everybody_who_would_have_come_meanwhile() {
    let target = Stalling {
        start: Instant::now(),
        stall: 400 * MS,
        period: 1000 * MS,
    };
    let shape = Shape::open(200.0).duration(3000 * MS).in_flight_max(5);
    let summary = run(target, &shape).await;
    let open = summary.open.as_ref().unwrap();
    // 40 % of the sends meet a stall, for up to 400 ms; five of 200 see it from inside.
    let (corrected, raw) = (summary.latency_ms(0.95), open.raw_latency_ms(0.95));
    assert!(corrected >= raw + 100.0, "corrected {corrected} ms, raw {raw} ms");
    assert!(corrected >= 250.0, "{corrected} ms");
    assert!(open.late_sends > 100, "{} were late", open.late_sends);
    assert_eq!(open.sent + open.dropped + open.skipped, 600);
    assert_eq!(summary.users, 5, "no more than the slots are under way");
}

#[tokio::test]
async fn every_send_is_made_when_there_are_slots_for_them() {
    for spacing in [Spacing::Constant, Spacing::Poisson { seed: 7 }] {
        let (target, done) = Sleeper::of(20 * MS);
        let shape = Shape::open(500.0)
            .warm_up(200 * MS)
            .duration(1000 * MS)
            .spacing(spacing);
        let summary = run(target, &shape).await;
        let open = summary.open.as_ref().unwrap();
        let asked = open.sent + open.dropped + open.skipped;
        match spacing {
            Spacing::Constant => assert_eq!(asked, 500),
            // Five standard deviations.
            Spacing::Poisson { .. } => assert!(asked.abs_diff(500) < 112, "{asked}"),
        }
        assert_eq!(open.dropped, 0);
        assert_eq!(
            done.load(Ordering::Relaxed),
            summary.warm_up + summary.ok + summary.late,
            "what was sent is counted"
        );
        assert_eq!(open.seed, matches!(spacing, Spacing::Poisson { .. }).then_some(7));
        assert_eq!(open.generator_limited, open.send_lag_p99_ms > 1.0);
    }
}

#[tokio::test]
async fn what_finds_no_slot_waits_what_finds_no_room_is_dropped_and_what_is_left_is_skipped() {
    // Two slots of 50 ms each make 40 a second of 200.
    let (target, done) = Sleeper::of(50 * MS);
    let shape = Shape::open(200.0).duration(1000 * MS).in_flight_max(2).queue_max(10);
    let summary = run(target, &shape).await;
    let open = summary.open.as_ref().unwrap();
    assert_eq!(open.sent + open.dropped + open.skipped, 200);
    assert_eq!(open.sent, done.load(Ordering::Relaxed));
    assert!(open.sent <= 42 && open.late_sends >= open.sent - 2, "{open:?}");
    assert!(open.dropped >= 140, "{}", open.dropped);
    assert!((1..=10).contains(&open.skipped), "{}", open.skipped);
    let plateau = &summary.plateaus[0];
    assert_eq!(
        (plateau.late, plateau.dropped, plateau.skipped),
        (open.late_sends, open.dropped, open.skipped)
    );
    assert!(plateau.little_n() <= 2.1, "{}", plateau.little_n());
}

#[tokio::test]
async fn a_step_belongs_to_the_plateau_in_whose_window_its_time_came() {
    let (target, _) = Sleeper::of(MS);
    let shape = Shape::open(100.0).duration(500 * MS).ramp(300.0, 200 * MS);
    let shape = shape.plateau(300.0).warm_up(100 * MS).duration(500 * MS);
    let summary = run(target, &shape).await;
    let asked: Vec<u64> = summary.plateaus.iter().map(|plateau| plateau.ok).collect();
    assert!(asked[0].abs_diff(50) <= 5 && asked[1].abs_diff(150) <= 15, "{asked:?}");
    let open = summary.open.unwrap();
    // A send at the very edge of a window may fall to either side.
    assert!((open.sent + open.skipped).abs_diff(200) <= 2, "{}", open.sent);
}

#[tokio::test]
async fn a_limit_of_iterations_is_met_exactly() {
    let (target, done) = Sleeper::of(5 * MS);
    let shape = Shape::open(1000.0)
        .duration(Duration::from_secs(600))
        .max_iterations(100);
    let summary = run(target, &shape).await;
    assert_eq!((summary.ok, done.load(Ordering::Relaxed)), (100, 100));
    assert!(summary.seconds < 60.0, "{}", summary.seconds);
}

#[tokio::test]
async fn a_rate_that_is_missed_ends_the_load_and_says_both_rates() {
    let (target, _) = Sleeper::of(100 * MS);
    let rule = AbortBelow {
        share: 0.9,
        over: Duration::from_secs(1),
    };
    let shape = Shape::open(200.0)
        .duration(Duration::from_secs(600))
        .in_flight_max(2)
        .abort_below(rule);
    let summary = run(target, &shape).await;
    let reason = summary.aborted.as_ref().unwrap();
    assert!(
        reason.contains("the rate was missed") && reason.contains("at least 90.0 %"),
        "{reason}"
    );
    assert!(summary.seconds < 60.0 && summary.open.unwrap().skipped > 0);
}

#[tokio::test]
async fn a_dropped_open_loop_stops() {
    let (target, done) = Sleeper::of(MS);
    let shape = Shape::open(500.0).duration(Duration::from_secs(3600));
    let running = load::run(Arc::new(target), &shape, |_| {});
    assert!(tokio::time::timeout(300 * MS, running).await.is_err());
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
