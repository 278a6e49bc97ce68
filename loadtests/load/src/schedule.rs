//! A shape laid out in time: segments one after another, each with a level at its begin and its end.
//!
//! All times are distances from the start of the run.

use std::time::Duration;

use crate::shape::{Shape, Stage};

/// What a segment is for. Plateaus are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    WarmUp(usize),
    Window(usize),
    Ramp,
}

#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) phase: Phase,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Segment {
    pub(crate) fn level_at(&self, at: Duration) -> f64 {
        let length = (self.end - self.begin).as_secs_f64();
        if self.from == self.to || length == 0.0 {
            return self.to;
        }
        let passed = at.saturating_sub(self.begin).as_secs_f64() / length;
        self.from + (self.to - self.from) * passed.min(1.0)
    }

    /// The plateau it counts for.
    pub(crate) fn window(&self) -> Option<usize> {
        match self.phase {
            Phase::Window(plateau) => Some(plateau),
            Phase::WarmUp(_) | Phase::Ramp => None,
        }
    }
}

/// The segments of a run. The first warm-up can be shortened while it lasts.
#[derive(Debug)]
pub(crate) struct Schedule {
    segments: Vec<Segment>,
    /// How short the first warm-up may be made; `None` when it is as long as it is.
    least: Option<Duration>,
}

impl Schedule {
    pub(crate) fn new(shape: &Shape) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        let (mut level, mut at) = (0.0, Duration::ZERO);
        let mut add = |phase, from: f64, to: f64, length: Duration| {
            if !length.is_zero() {
                let (begin, end) = (at, at + length);
                segments.push(Segment {
                    phase,
                    begin,
                    end,
                    from,
                    to,
                });
                at = end;
            }
        };
        let (mut plateau, mut least) = (0, None);
        for (index, stage) in shape.stages.iter().enumerate() {
            match *stage {
                Stage::Plateau {
                    level: held,
                    warm_up,
                    duration,
                } => {
                    let longest = shape.warm_up_max.filter(|_| index == 0);
                    least = least.or(longest.map(|_| warm_up));
                    add(Phase::WarmUp(plateau), held, held, longest.unwrap_or(warm_up));
                    add(Phase::Window(plateau), held, held, duration);
                    plateau += 1;
                    level = held;
                }
                Stage::Ramp { to, duration } => {
                    add(Phase::Ramp, level, to, duration);
                    level = to;
                }
            }
        }
        Self { segments, least }
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The segment of that moment; `None` after the end.
    pub(crate) fn at(&self, at: Duration) -> Option<&Segment> {
        self.segments.iter().find(|segment| at < segment.end)
    }

    /// The level of that moment; 0 after the end.
    pub(crate) fn level_at(&self, at: Duration) -> f64 {
        self.at(at).map_or(0.0, |segment| segment.level_at(at))
    }

    pub(crate) fn end(&self) -> Duration {
        self.segments.last().map_or(Duration::ZERO, |segment| segment.end)
    }

    /// Ends the first warm-up `now`, or as soon after as it may; everything after it moves up. Does nothing when it is over.
    pub(crate) fn begin_window(&mut self, now: Duration) {
        let (Some(least), Some(first)) = (self.least.take(), self.segments.first_mut()) else {
            return;
        };
        let end = now.max(least);
        if first.phase != Phase::WarmUp(0) || end >= first.end {
            return;
        }
        let earlier = first.end - end;
        first.end = end;
        for segment in &mut self.segments[1..] {
            segment.begin -= earlier;
            segment.end -= earlier;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn laid_out(schedule: &Schedule) -> Vec<(Phase, u64, u64)> {
        let segments = schedule.segments().iter();
        segments
            .map(|segment| (segment.phase, segment.begin.as_secs(), segment.end.as_secs()))
            .collect()
    }

    #[test]
    fn stages_follow_one_another_and_a_ramp_begins_where_the_stage_before_it_ended() {
        let shape = Shape::closed(10).warm_up(2 * S).duration(5 * S);
        let shape = shape.ramp(30.0, 10 * S).plateau(30.0).duration(4 * S).ramp(0.0, 2 * S);
        let schedule = Schedule::new(&shape);
        assert_eq!(
            laid_out(&schedule),
            [
                (Phase::WarmUp(0), 0, 2),
                (Phase::Window(0), 2, 7),
                (Phase::Ramp, 7, 17),
                (Phase::Window(1), 17, 21),
                (Phase::Ramp, 21, 23),
            ]
        );
        let levels = [0, 6, 7, 12, 17, 20, 22, 23].map(|s| schedule.level_at(S * s));
        assert_eq!(levels, [10.0, 10.0, 10.0, 20.0, 30.0, 30.0, 15.0, 0.0]);
        assert_eq!((schedule.end(), shape.length()), (23 * S, 23 * S));
    }

    #[test]
    fn a_load_can_begin_with_a_ramp_from_nothing() {
        let schedule = Schedule::new(&Shape::open(0.0).ramp(100.0, 10 * S).plateau(100.0).duration(S));
        assert_eq!(schedule.level_at(5 * S), 50.0);
        assert_eq!(laid_out(&schedule), [(Phase::Ramp, 0, 10), (Phase::Window(0), 10, 11)]);
    }

    #[test]
    fn the_window_begins_when_it_is_told_to_but_not_before_the_least_and_at_the_longest_warm_up() {
        let shape = Shape::closed(1).warm_up(2 * S).warm_up_max(9 * S).duration(5 * S);
        let shape = shape.plateau(2.0).duration(3 * S);
        for (told, begins) in [(0, 2), (4, 4), (9, 9)] {
            let mut schedule = Schedule::new(&shape);
            schedule.begin_window(S * told);
            assert_eq!(
                laid_out(&schedule),
                [
                    (Phase::WarmUp(0), 0, begins),
                    (Phase::Window(0), begins, begins + 5),
                    (Phase::Window(1), begins + 5, begins + 8),
                ]
            );
            schedule.begin_window(S);
            assert_eq!(schedule.segments()[0].end.as_secs(), begins, "told once is enough");
        }
        let mut fixed = Schedule::new(&Shape::closed(1).warm_up(2 * S));
        fixed.begin_window(S);
        assert_eq!(fixed.segments()[0].end, 2 * S, "its length was not left open");
    }
}
