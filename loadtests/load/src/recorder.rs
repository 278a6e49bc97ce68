//! Sorts iterations into phases, seconds and histograms, by the moment they end.
//!
//! It has no clock: every time is a distance from the start of the run, told by its owner.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

use crate::limits::{Seen, Watch};
use crate::plateau::{Part, Plateau};
use crate::schedule::{Phase, Schedule, Segment};
use crate::sends::{Counts, Sends};
use crate::shape::{Loop, Shape};
use crate::summary::{Second, Summary};
use crate::tally::{Tally, by_name};
use crate::target::{Iteration, Kind};

/// The longest series. A longer run has longer entries: their histograms are merged, so that no percentile is ever averaged.
const SERIES: u64 = 3600;
/// How much of a failure's text is kept.
const DETAIL: usize = 400;

/// Everything a run counts. Its owner calls [`Recorder::advance`] at each [`Recorder::boundary`], so that a second in
/// which nothing ends is closed as well.
pub(crate) struct Recorder {
    schedule: Schedule,
    /// The segment that time has reached; behind the last when the run is over.
    segment: usize,
    think: Duration,
    second: Tally,
    second_start: Duration,
    index: u64,
    entry: Tally,
    entry_start: Duration,
    /// Seconds that make an entry of the series.
    width: u32,
    entry_seconds: u32,
    /// The plateaus whose window has begun.
    plateaus: Vec<Measured>,
    /// What ended inside a window, by the target's parts.
    parts: Vec<(String, Tally)>,
    failures: BTreeMap<Kind, String>,
    warm_up: u64,
    late: u64,
    series: Vec<Second>,
    sends: Option<Sends>,
    watch: Option<Watch>,
    aborted: Option<String>,
}

/// A plateau from the begin of its window on.
struct Measured {
    level: f64,
    warm_up: Duration,
    begin: Duration,
    /// The last end that was counted, and in the end that of the window.
    end: Duration,
    tally: Tally,
    cycles: Duration,
    /// The thread's CPU time when the window began, and in the end what it used.
    cpu: Duration,
}

impl Recorder {
    /// A recorder for a run on the thread whose CPU time it reports.
    pub(crate) fn new(shape: &Shape, parts: Vec<String>) -> Self {
        let schedule = Schedule::new(shape);
        let open = shape.kind == Loop::Open;
        let plateaus = schedule.segments().iter().filter_map(Segment::window).count();
        let width = shape.length().as_secs().div_ceil(SERIES).max(1);
        let mut recorder = Self {
            schedule,
            segment: 0,
            think: shape.think_time(),
            second: Tally::new(open),
            second_start: Duration::ZERO,
            index: 0,
            entry: Tally::new(open),
            entry_start: Duration::ZERO,
            width: u32::try_from(width).expect("a load lasts a day at most"),
            entry_seconds: 0,
            plateaus: Vec::new(),
            parts: parts.into_iter().map(|name| (name, Tally::new(false))).collect(),
            failures: BTreeMap::new(),
            warm_up: 0,
            late: 0,
            series: Vec::new(),
            sends: open.then(|| Sends::new(shape.sends_spaced(), plateaus)),
            watch: Watch::new(&shape.thresholds, shape.abort_below.as_ref()),
            aborted: None,
        };
        recorder.enter_segment();
        recorder
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What is counted of an open loop's sends.
    pub(crate) fn sends(&mut self) -> Option<&mut Sends> {
        self.sends.as_mut()
    }

    /// When the current second ends, or `None` when the run is over.
    pub(crate) fn boundary(&self) -> Option<Duration> {
        let segment = self.schedule.segments().get(self.segment)?;
        Some(segment.end.min(self.second_start + Duration::from_secs(1)))
    }

    /// Closes every second that has ended by `now`, and tells of each.
    pub(crate) fn advance(&mut self, now: Duration, tell: &mut impl FnMut(Second)) {
        while let Some(boundary) = self.boundary().filter(|boundary| *boundary <= now) {
            self.close_second(boundary, tell);
            if self.aborted.is_some() {
                self.end(boundary);
            } else if boundary == self.schedule.segments()[self.segment].end {
                self.leave_segment(boundary);
                self.segment += 1;
                self.enter_segment();
            }
        }
    }

    /// Ends the first warm-up `now`, if the shape leaves that open.
    pub(crate) fn begin_window(&mut self, now: Duration, tell: &mut impl FnMut(Second)) {
        self.advance(now, tell);
        self.schedule.begin_window(now);
        self.advance(now, tell);
    }

    /// Counts an iteration of that part of the target that began at `begun`, so long after its time had come, and ended at `ended`, which must not lie
    /// before the last one's.
    pub(crate) fn record(
        &mut self,
        begun: Duration,
        waited: Duration,
        ended: Duration,
        (iteration, part): (&Iteration, usize),
        tell: &mut impl FnMut(Second),
    ) {
        self.advance(ended, tell);
        match self.phase() {
            Some(Phase::Window(_)) => {
                if let Some(plateau) = self.plateaus.last_mut() {
                    plateau.cycles += ended - begun + self.think;
                    plateau.end = ended;
                }
                if let Some((_, tally)) = self.parts.get_mut(part) {
                    tally.count(iteration, waited);
                }
            }
            Some(_) => self.warm_up += 1,
            None => self.late += 1,
        }
        if let Err(failure) = &iteration.outcome {
            let detail = || failure.detail.chars().take(DETAIL).collect();
            self.failures.entry(failure.kind).or_insert_with(detail);
        }
        if self.phase().is_some() {
            self.second.count(iteration, waited);
        }
    }

    /// Ends the run at `now` when every user has stopped before its time; the length of the window is then the time to the
    /// last end that was counted.
    pub(crate) fn finish(&mut self, now: Duration, tell: &mut impl FnMut(Second)) {
        self.advance(now, tell);
        let window = matches!(self.phase(), Some(Phase::Window(_)));
        let last = self.plateaus.last().filter(|_| window).map(|plateau| plateau.end);
        if self.phase().is_some() {
            self.close_second(now, tell);
            self.end(last.unwrap_or(now));
        }
    }

    /// The result, once the run is over; `users` is that of [`Summary::users`], and `abandoned` iterations were cut off.
    pub(crate) fn summary(self, users: usize, abandoned: u64) -> Summary {
        let mut all = Tally::new(self.sends.is_some());
        let (mut seconds, mut cycles, mut cpu) = (0.0, Duration::ZERO, Duration::ZERO);
        let mut plateaus = Vec::with_capacity(self.plateaus.len());
        for (index, plateau) in self.plateaus.into_iter().enumerate() {
            all.merge(&plateau.tally);
            seconds += (plateau.end - plateau.begin).as_secs_f64();
            cycles += plateau.cycles;
            cpu += plateau.cpu;
            plateaus.push(plateau.describe(self.sends.as_ref().map(|sends| sends.of(index)).unwrap_or_default()));
        }
        let ok = all.latency.len();
        let open = self
            .sends
            .map(|sends| sends.describe(seconds, all.raw.take().expect("an open loop has it")));
        Summary {
            users,
            ok,
            errors: by_name(&all.errors),
            failures: self
                .failures
                .into_iter()
                .map(|(kind, detail)| (kind.to_string(), detail))
                .collect(),
            seconds,
            throughput: rate(ok, seconds),
            cycle_mean_s: mean(cycles, ok + all.failed()),
            latency: all.latency,
            generator_cpu_s: cpu.as_secs_f64(),
            warm_up: self.warm_up,
            late: self.late,
            abandoned,
            series: self.series,
            plateaus,
            parts: self.parts.into_iter().map(|(name, tally)| part(name, tally)).collect(),
            open,
            aborted: self.aborted,
        }
    }

    fn phase(&self) -> Option<Phase> {
        Some(self.schedule.segments().get(self.segment)?.phase)
    }

    /// Has a window counted if one begins.
    fn enter_segment(&mut self) {
        let segments = self.schedule.segments();
        let Some(segment) = segments.get(self.segment) else {
            return;
        };
        let Some(plateau) = segment.window() else { return };
        let before = self.segment.checked_sub(1).map(|index| &segments[index]);
        let warm_up = before.filter(|before| before.phase == Phase::WarmUp(plateau));
        self.plateaus.push(Measured {
            level: segment.to,
            warm_up: warm_up.map_or(Duration::ZERO, |warm_up| warm_up.end - warm_up.begin),
            begin: segment.begin,
            end: segment.begin,
            tally: Tally::new(self.sends.is_some()),
            cycles: Duration::ZERO,
            cpu: thread_cpu(),
        });
    }

    /// Closes the window that ends, if one does.
    fn leave_segment(&mut self, at: Duration) {
        let window = matches!(self.phase(), Some(Phase::Window(_)));
        self.close_entry();
        if let Some(plateau) = self.plateaus.last_mut().filter(|_| window) {
            plateau.end = at;
            plateau.cpu = thread_cpu().saturating_sub(plateau.cpu);
        }
    }

    fn end(&mut self, at: Duration) {
        self.leave_segment(at);
        self.segment = self.schedule.segments().len();
    }

    fn close_second(&mut self, at: Duration, tell: &mut impl FnMut(Second)) {
        let length = at - self.second_start;
        if length.is_zero() {
            return;
        }
        let segment = &self.schedule.segments()[self.segment];
        let (window, level) = (segment.window().is_some(), segment.level_at(self.second_start));
        tell(
            self.second
                .describe(self.index, self.second_start, length, !window, level),
        );
        if let Some(plateau) = self.plateaus.last_mut().filter(|_| window) {
            plateau.tally.merge(&self.second);
        }
        self.entry.merge(&self.second);
        self.watch(length);
        self.second.clear();
        self.second_start = at;
        self.index += 1;
        self.entry_seconds += 1;
        if self.entry_seconds == self.width {
            self.close_entry();
        }
    }

    /// Has the rules judge the second that is being closed.
    fn watch(&mut self, length: Duration) {
        let (asked, sent, overdue) = self.sends.as_mut().map(Sends::take_second).unwrap_or_default();
        let cold = self.segment == 0 && matches!(self.phase(), Some(Phase::WarmUp(_)));
        let Some(watch) = self.watch.as_mut().filter(|_| !cold) else {
            return;
        };
        let mut tally = Tally::new(false);
        tally.merge_corrected(&self.second);
        let seen = Seen {
            length,
            tally,
            asked,
            sent,
            overdue,
        };
        self.aborted = watch.see(seen);
    }

    fn close_entry(&mut self) {
        if self.entry_seconds == 0 {
            return;
        }
        let segment = &self.schedule.segments()[self.segment];
        let (window, level) = (segment.window().is_some(), segment.level_at(self.entry_start));
        let index = self.index - u64::from(self.entry_seconds);
        let length = self.second_start - self.entry_start;
        self.series
            .push(self.entry.describe(index, self.entry_start, length, !window, level));
        self.entry.clear();
        self.entry_start = self.second_start;
        self.entry_seconds = 0;
    }
}

impl Measured {
    fn describe(self, sends: Counts) -> Plateau {
        let seconds = (self.end - self.begin).as_secs_f64();
        let ok = self.tally.latency.len();
        Plateau {
            level: self.level,
            warm_up_s: self.warm_up.as_secs_f64(),
            seconds,
            ok,
            errors: by_name(&self.tally.errors),
            throughput: rate(ok, seconds),
            cycle_mean_s: mean(self.cycles, ok + self.tally.failed()),
            latency: self.tally.latency,
            raw_latency: self.tally.raw,
            generator_cpu_s: self.cpu.as_secs_f64(),
            late: sends.late,
            dropped: sends.dropped,
            skipped: sends.skipped,
        }
    }
}

fn part(name: String, tally: Tally) -> Part {
    Part {
        name,
        ok: tally.latency.len(),
        errors: by_name(&tally.errors),
        latency: tally.latency,
    }
}

fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn mean(sum: Duration, count: u64) -> f64 {
    if count > 0 {
        sum.as_secs_f64() / count as f64
    } else {
        0.0
    }
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
mod tests;
