//! Plateaus, ramps, and what ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use load::{Failure, Handle, Iteration, Kind, Measure, Shape, Target, Threshold};

use crate::support::{MS, Sleeper, closed, errors, run};

/// Counts the users that are at work at once.
#[derive(Default)]
struct Crowd {
    here: AtomicUsize,
    most: AtomicUsize,
    made: AtomicUsize,
}

impl Target for Crowd {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        let here = self.here.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(here, Ordering::Relaxed);
        tokio::time::sleep(5 * MS).await;
        self.here.fetch_sub(1, Ordering::Relaxed);
        Iteration {
            timed: 5 * MS,
            outcome: Ok(()),
        }
    }
}

#[tokio::test]
async fn users_rise_and_fall_over_the_stages_and_each_plateau_is_counted_by_itself() {
    let shape = closed(2, 300 * MS).plateau(12.0).warm_up(100 * MS).duration(300 * MS);
    let shape = shape
        .ramp(3.0, 200 * MS)
        .plateau(3.0)
        .warm_up(100 * MS)
        .duration(300 * MS);
    let crowd = Arc::new(Crowd::default());
    let summary = load::run(Arc::clone(&crowd), &shape, |_| {}).await.unwrap();
    assert_eq!(summary.users, 12);
    assert_eq!(crowd.most.load(Ordering::Relaxed), 12);
    assert_eq!(crowd.made.load(Ordering::Relaxed), 12, "a fall makes no user anew");
    let levels: Vec<f64> = summary.plateaus.iter().map(|plateau| plateau.level).collect();
    assert_eq!(levels, [2.0, 12.0, 3.0]);
    for plateau in &summary.plateaus {
        // What was under way at both ends of so short a window is a part of it that shows.
        let n = plateau.little_n();
        assert!(
            (0.5 * plateau.level..=1.2 * plateau.level).contains(&n),
            "{n} of {}",
            plateau.level
        );
    }
    assert_eq!(
        summary.ok,
        summary.plateaus.iter().map(|plateau| plateau.ok).sum::<u64>()
    );
    assert!(summary.warm_up > 0, "the ramp and two warm-ups");
}

#[tokio::test]
async fn users_who_left_come_back() {
    let shape = closed(6, 150 * MS)
        .ramp(0.0, 100 * MS)
        .ramp(6.0, 100 * MS)
        .plateau(6.0)
        .duration(150 * MS);
    let crowd = Arc::new(Crowd::default());
    let summary = load::run(Arc::clone(&crowd), &shape, |_| {}).await.unwrap();
    assert!(
        summary.plateaus[1].little_n() > 3.0,
        "{}",
        summary.plateaus[1].little_n()
    );
    assert!(crowd.made.load(Ordering::Relaxed) > 6, "those who left were let go");
}

#[tokio::test]
async fn the_end_of_the_warm_up_is_decided_from_outside() {
    let (target, _) = Sleeper::of(5 * MS);
    let handle = Handle::default();
    let shape = closed(2, 400 * MS).warm_up_max(Duration::from_secs(3600));
    let steady = async {
        tokio::time::sleep(250 * MS).await;
        handle.begin_window();
    };
    let load = load::run_with(Arc::new(target), &shape, &handle, |_| {});
    let summary = tokio::join!(load, steady).0.unwrap();
    let plateau = &summary.plateaus[0];
    assert!((0.2..60.0).contains(&plateau.warm_up_s), "{}", plateau.warm_up_s);
    assert!((plateau.seconds - 0.4).abs() < 1e-9, "{}", plateau.seconds);
    assert!(summary.warm_up > 0 && summary.ok > 0);
}

#[tokio::test]
async fn a_warm_up_that_nobody_ends_is_as_long_as_it_may_be() {
    let (target, _) = Sleeper::of(5 * MS);
    let summary = run(target, &closed(1, 100 * MS).warm_up_max(200 * MS)).await;
    assert!((summary.plateaus[0].warm_up_s - 0.2).abs() < 1e-9);
}

/// Refuses everything after so many iterations.
struct Tiring(AtomicUsize);

impl Target for Tiring {
    type User = ();

    async fn user(&self, _index: usize) -> Result<(), Failure> {
        Ok(())
    }

    async fn iterate(&self, (): &mut ()) -> Iteration {
        tokio::time::sleep(5 * MS).await;
        let tired = self.0.fetch_add(1, Ordering::Relaxed) >= 100;
        Iteration {
            timed: 5 * MS,
            outcome: if tired {
                Err(Failure::new(Kind::Status(503), "tired"))
            } else {
                Ok(())
            },
        }
    }
}

#[tokio::test]
async fn a_threshold_ends_the_load_with_its_reason() {
    let threshold = Threshold {
        measure: Measure::ErrorShare,
        at_most: 0.05,
        over: Duration::from_secs(1),
    };
    let shape = Shape::closed(4).duration(Duration::from_secs(600)).threshold(threshold);
    let summary = run(Tiring(AtomicUsize::new(0)), &shape).await;
    let reason = summary.aborted.as_ref().unwrap();
    assert!(
        reason.contains("iterations failed within 1 s") && reason.contains("errors at most 5"),
        "{reason}"
    );
    assert_eq!(errors(&summary).first().map(|(kind, _)| *kind), Some("status-503"));
    assert!(summary.seconds < 60.0, "{}", summary.seconds);
}
