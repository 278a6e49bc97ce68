//! Sorts iterations into phases, seconds and histograms, by the moment they end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::shape::Closed;
use crate::summary::{Second, Summary};
use crate::tally::{Tally, by_name};
use crate::target::{Iteration, Kind};

/// The longest series of a phase. A longer phase has longer entries: their histograms are merged, so that no percentile
/// is ever averaged.
const SERIES: u64 = 3600;
/// How much of a failure's text is kept.
const DETAIL: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Window,
    Over,
}

/// Everything a run counts. Its owner calls [`Recorder::advance`] at each [`Recorder::boundary`], so that a second in
/// which nothing ends is closed as well.
pub(crate) struct Recorder {
    users: usize,
    think: Duration,
    start: Instant,
    window: Instant,
    end: Instant,
    phase: Phase,
    second: Tally,
    second_start: Instant,
    index: u64,
    entry: Tally,
    entry_start: Instant,
    /// Seconds that make an entry of the series, by phase.
    width: u32,
    entry_seconds: u32,
    total: Tally,
    failures: BTreeMap<Kind, String>,
    cycles: Duration,
    warm_up: u64,
    late: u64,
    cpu: Duration,
    last_end: Instant,
    series: Vec<Second>,
}

impl Recorder {
    /// A recorder for a run that begins at `start`, on the thread whose CPU time it reports.
    pub(crate) fn new(shape: &Closed, start: Instant) -> Self {
        let window = start + shape.warm_up;
        let mut recorder = Self {
            users: shape.users,
            think: shape.think,
            start,
            window,
            end: window + shape.duration,
            phase: Phase::WarmUp,
            second: Tally::new(),
            second_start: start,
            index: 0,
            entry: Tally::new(),
            entry_start: start,
            width: width(shape.warm_up),
            entry_seconds: 0,
            total: Tally::new(),
            failures: BTreeMap::new(),
            cycles: Duration::ZERO,
            warm_up: 0,
            late: 0,
            cpu: Duration::ZERO,
            last_end: start,
            series: Vec::new(),
        };
        if shape.warm_up.is_zero() {
            recorder.enter_window(shape.duration);
        }
        recorder
    }

    /// When the current second ends, or `None` when the window has closed.
    pub(crate) fn boundary(&self) -> Option<Instant> {
        let phase_end = match self.phase {
            Phase::WarmUp => self.window,
            Phase::Window => self.end,
            Phase::Over => return None,
        };
        Some(phase_end.min(self.second_start + Duration::from_secs(1)))
    }

    /// Closes every second that has ended by `now`, and tells of each.
    pub(crate) fn advance(&mut self, now: Instant, tell: &mut impl FnMut(Second)) {
        while let Some(boundary) = self.boundary().filter(|boundary| *boundary <= now) {
            self.close_second(boundary, tell);
            if self.phase == Phase::WarmUp && boundary == self.window {
                self.close_entry(boundary);
                self.enter_window(self.end - self.window);
            } else if self.phase == Phase::Window && boundary == self.end {
                self.close_window(boundary);
            }
        }
    }

    /// Counts an iteration that began at `begun` and ended at `ended`, which must not lie before the last one's.
    pub(crate) fn record(
        &mut self,
        begun: Instant,
        ended: Instant,
        iteration: &Iteration,
        tell: &mut impl FnMut(Second),
    ) {
        self.advance(ended, tell);
        match self.phase {
            Phase::WarmUp => self.warm_up += 1,
            Phase::Window => {
                self.cycles += ended - begun + self.think;
                self.last_end = ended;
            }
            Phase::Over => self.late += 1,
        }
        if let Err(failure) = &iteration.outcome {
            let detail = || failure.detail.chars().take(DETAIL).collect();
            self.failures.entry(failure.kind).or_insert_with(detail);
        }
        if self.phase != Phase::Over {
            self.second.count(iteration);
        }
    }

    /// Ends the run at `now` when every user has stopped before the window has closed; its length is then the time to
    /// the last end that was counted.
    pub(crate) fn finish(&mut self, now: Instant, tell: &mut impl FnMut(Second)) {
        self.advance(now, tell);
        if self.phase == Phase::Over {
            return;
        }
        if now > self.second_start {
            self.close_second(now, tell);
        }
        if self.phase == Phase::WarmUp {
            self.close_entry(now);
            self.enter_window(Duration::ZERO);
        }
        self.end = self.last_end.max(self.window);
        self.close_window(now);
    }

    /// The result, once the window has closed; `abandoned` users were cut off.
    pub(crate) fn summary(self, abandoned: u64) -> Summary {
        let seconds = self.end.saturating_duration_since(self.window).as_secs_f64();
        let ok = self.total.latency.len();
        let counted = ok + self.total.errors.values().sum::<u64>();
        Summary {
            users: self.users,
            ok,
            errors: by_name(&self.total.errors),
            failures: self
                .failures
                .into_iter()
                .map(|(kind, detail)| (kind.to_string(), detail))
                .collect(),
            seconds,
            throughput: if seconds > 0.0 { ok as f64 / seconds } else { 0.0 },
            latency: self.total.latency,
            cycle_mean_s: if counted > 0 {
                self.cycles.as_secs_f64() / counted as f64
            } else {
                0.0
            },
            generator_cpu_s: self.cpu.as_secs_f64(),
            warm_up: self.warm_up,
            late: self.late,
            abandoned,
            series: self.series,
        }
    }

    fn enter_window(&mut self, length: Duration) {
        self.phase = Phase::Window;
        self.width = width(length);
        self.cpu = thread_cpu();
        self.last_end = self.window;
    }

    fn close_window(&mut self, at: Instant) {
        self.close_entry(at);
        self.phase = Phase::Over;
        self.cpu = thread_cpu().saturating_sub(self.cpu);
    }

    fn close_second(&mut self, at: Instant, tell: &mut impl FnMut(Second)) {
        let warm_up = self.phase == Phase::WarmUp;
        tell(self.second.describe(
            self.index,
            self.second_start - self.start,
            at - self.second_start,
            warm_up,
        ));
        if self.phase == Phase::Window {
            self.total.merge(&self.second);
        }
        self.entry.merge(&self.second);
        self.second.clear();
        self.second_start = at;
        self.index += 1;
        self.entry_seconds += 1;
        if self.entry_seconds == self.width {
            self.close_entry(at);
        }
    }

    fn close_entry(&mut self, at: Instant) {
        if self.entry_seconds == 0 {
            return;
        }
        let index = self.index - u64::from(self.entry_seconds);
        let warm_up = self.phase == Phase::WarmUp;
        self.series.push(
            self.entry
                .describe(index, self.entry_start - self.start, at - self.entry_start, warm_up),
        );
        self.entry.clear();
        self.entry_start = at;
        self.entry_seconds = 0;
    }
}

fn width(phase: Duration) -> u32 {
    u32::try_from(phase.as_secs().div_ceil(SERIES).max(1)).expect("a phase lasts a day at most")
}

/// CPU time of the calling thread so far.
fn thread_cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may always ask for its own usage");
    let micros = |time: nix::sys::time::TimeVal| {
        Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or_default())
    };
    micros(usage.user_time()) + micros(usage.system_time())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::histogram;
    use crate::target::Failure;

    fn shape(warm_up: u64, duration: u64) -> Closed {
        Closed {
            users: 1,
            warm_up: Duration::from_secs(warm_up),
            duration: Duration::from_secs(duration),
            think: Duration::ZERO,
            max_iterations: None,
        }
    }

    fn took(millis: u64) -> Iteration {
        Iteration {
            timed: Duration::from_millis(millis),
            outcome: Ok(()),
        }
    }

    #[test]
    fn the_series_of_six_hours_is_as_long_as_that_of_one_and_loses_nothing() {
        let start = Instant::now();
        let long = 6 * 3600;
        let mut recorder = Recorder::new(&shape(0, long), start);
        let mut told = 0;
        for second in 0..long {
            let ended = start + Duration::from_secs(second) + Duration::from_millis(500);
            recorder.record(
                ended - Duration::from_millis(1),
                ended,
                &took(second % 6 + 1),
                &mut |_| told += 1,
            );
        }
        recorder.advance(start + Duration::from_secs(long), &mut |_| told += 1);
        let summary = recorder.summary(0);
        assert_eq!((told, summary.ok, summary.series.len()), (long, long, 3600));
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
        let start = Instant::now();
        let mut recorder = Recorder::new(&shape(2, 3), start);
        let mut told = Vec::new();
        let ended = start + Duration::from_millis(4500);
        recorder.record(start, ended, &took(4500), &mut |second| {
            told.push((second.index, second.warm_up, second.ok));
        });
        recorder.advance(start + Duration::from_secs(9), &mut |second| {
            told.push((second.index, second.warm_up, second.ok));
        });
        assert_eq!(
            told,
            [(0, true, 0), (1, true, 0), (2, false, 0), (3, false, 0), (4, false, 1)]
        );
        assert!(recorder.boundary().is_none());
        let summary = recorder.summary(0);
        assert_eq!((summary.ok, summary.seconds, summary.cycle_mean_s), (1, 3.0, 4.5));
    }

    #[test]
    fn a_load_that_ends_in_its_warm_up_has_counted_nothing() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&shape(10, 10), start);
        let ended = start + Duration::from_millis(1500);
        recorder.record(start, ended, &took(1500), &mut |_| {});
        recorder.finish(ended, &mut |_| {});
        let summary = recorder.summary(0);
        assert_eq!((summary.ok, summary.warm_up, summary.throughput), (0, 1, 0.0));
        assert!(summary.series.iter().all(|entry| entry.warm_up));
        assert_eq!(summary.series.iter().map(|entry| entry.ok).sum::<u64>(), 1);
    }

    #[test]
    fn failures_are_in_the_cycle_and_not_in_the_latency() {
        let start = Instant::now();
        let mut recorder = Recorder::new(&shape(0, 10), start);
        let at = |millis| start + Duration::from_millis(millis);
        recorder.record(at(0), at(100), &took(100), &mut |_| {});
        let failure = Err(Failure::new(Kind::Status(503), "busy"));
        let failed = Iteration {
            timed: Duration::ZERO,
            outcome: failure,
        };
        recorder.record(at(100), at(400), &failed, &mut |_| {});
        recorder.advance(at(10_000), &mut |_| {});
        recorder.record(at(400), at(10_001), &took(9601), &mut |_| {});
        let summary = recorder.summary(2);
        assert_eq!(
            (summary.ok, summary.failed(), summary.late, summary.abandoned),
            (1, 1, 1, 2)
        );
        assert_eq!(summary.cycle_mean_s, 0.2);
        assert_eq!(summary.latency.max(), histogram().highest_equivalent(100_000));
    }
}
