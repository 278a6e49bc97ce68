//! The shape of a load: who decides when a request is sent, how many there are, and for how long.

use std::time::Duration;

use crate::error::LoadError;
use crate::limits::{self, AbortBelow, Threshold};

/// A bound on what can be asked for, so that a slip of the keyboard does not start a million tasks.
const MAX_USERS: usize = 100_000;
/// The highest rate that can be asked for, a second; no generator of one thread comes near it.
const MAX_RATE: f64 = 1_000_000.0;
/// The longest load, all stages together.
const MAX_LENGTH: Duration = Duration::from_secs(24 * 3600);
/// Every plateau keeps a histogram of its own.
const MAX_STAGES: usize = 100;
/// The length of a plateau that says nothing else.
const DURATION: Duration = Duration::from_secs(10);
/// Requests of an open loop that may be under way at once, when nothing else is said.
const IN_FLIGHT_MAX: usize = 256;
/// Requests of an open loop that may wait for one of those to end, when nothing else is said.
const QUEUE_MAX: usize = 10_000;

/// A load: a loop, closed or open, and the stages it goes through.
///
/// In a closed loop ([`Shape::closed`]) a level is a number of users; each starts its next iteration when its last one has
/// ended. In an open loop ([`Shape::open`]) a level is a rate; requests are sent when their time has come, whatever has
/// become of those before.
///
/// A *plateau* holds its level: load for its warm-up, then a window that is counted by itself. A *ramp* goes evenly from the
/// level before it (0 at the start) to its own, and is in no figure.
#[derive(Debug, Clone)]
pub struct Shape {
    pub(crate) kind: Loop,
    pub(crate) stages: Vec<Stage>,
    pub(crate) warm_up_max: Option<Duration>,
    pub(crate) max_iterations: Option<u64>,
    pub(crate) thresholds: Vec<Threshold>,
    pub(crate) abort_below: Option<AbortBelow>,
    think: Option<Duration>,
    spacing: Option<Spacing>,
    in_flight_max: Option<usize>,
    queue_max: Option<usize>,
    /// A warm-up or a duration was set where there was no plateau to have it.
    stray: bool,
}

/// Who decides when a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    Closed,
    Open,
}

/// The distances between the sends of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// All alike: 1 / rate.
    #[default]
    Constant,
    /// Exponential, as of many users who know nothing of each other; the seed determines them all.
    Poisson {
        /// Where the random numbers start.
        seed: u64,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Stage {
    Plateau {
        level: f64,
        warm_up: Duration,
        duration: Duration,
    },
    Ramp {
        to: f64,
        duration: Duration,
    },
}

impl Shape {
    /// A closed loop that begins with a plateau of so many users, without think time. With 0 users there is no such plateau,
    /// and the load begins with the stage that is added next.
    pub fn closed(users: usize) -> Self {
        Self::new(Loop::Closed).begin(users as f64)
    }

    /// An open loop that begins with a plateau of so many requests a second, evenly spaced. With a rate of 0 there is no such
    /// plateau, and the load begins with the stage that is added next.
    pub fn open(rate: f64) -> Self {
        Self::new(Loop::Open).begin(rate)
    }

    /// Adds a plateau, of 10 s and without a warm-up until [`Self::duration`] and [`Self::warm_up`] say otherwise.
    pub fn plateau(mut self, level: f64) -> Self {
        self.stages.push(Stage::Plateau {
            level,
            warm_up: Duration::ZERO,
            duration: DURATION,
        });
        self
    }

    /// Adds a ramp from the level reached so far.
    pub fn ramp(mut self, to: f64, duration: Duration) -> Self {
        self.stages.push(Stage::Ramp { to, duration });
        self
    }

    /// How long the last plateau is loaded before anything is counted.
    pub fn warm_up(mut self, length: Duration) -> Self {
        match self.stages.last_mut() {
            Some(Stage::Plateau { warm_up, .. }) => *warm_up = length,
            _ => self.stray = true,
        }
        self
    }

    /// The window of the last plateau, in which ends are counted.
    pub fn duration(mut self, length: Duration) -> Self {
        match self.stages.last_mut() {
            Some(Stage::Plateau { duration, .. }) => *duration = length,
            _ => self.stray = true,
        }
        self
    }

    /// Lets [`Handle::begin_window`](crate::Handle::begin_window) decide when the warm-up of the first plateau is over: not
    /// before [`Self::warm_up`], and at the latest after `length`.
    pub fn warm_up_max(mut self, length: Duration) -> Self {
        self.warm_up_max = Some(length);
        self
    }

    /// The pause of a user of a closed loop between two iterations.
    pub fn think(mut self, pause: Duration) -> Self {
        self.think = Some(pause);
        self
    }

    /// The distances between the sends of an open loop.
    pub fn spacing(mut self, spacing: Spacing) -> Self {
        self.spacing = Some(spacing);
        self
    }

    /// How many requests of an open loop may be under way at once, each on a connection of its own; 256 if nothing is said. A
    /// request whose time comes when there are as many waits for one of them to end, and is counted as late.
    pub fn in_flight_max(mut self, requests: usize) -> Self {
        self.in_flight_max = Some(requests);
        self
    }

    /// How many late requests of an open loop may wait at once; 10,000 if nothing is said. What comes then is dropped, and
    /// counted as that.
    pub fn queue_max(mut self, requests: usize) -> Self {
        self.queue_max = Some(requests);
        self
    }

    /// Ends the load early when this many iterations were started, those of warm-ups and ramps included.
    pub fn max_iterations(mut self, iterations: u64) -> Self {
        self.max_iterations = Some(iterations);
        self
    }

    /// Ends the load early when the bound does not hold; may be called more than once.
    pub fn threshold(mut self, threshold: Threshold) -> Self {
        self.thresholds.push(threshold);
        self
    }

    /// Ends an open loop early that does not reach its rate.
    pub fn abort_below(mut self, rule: AbortBelow) -> Self {
        self.abort_below = Some(rule);
        self
    }

    /// How long it lasts if nothing ends it early, with the longest warm-up it may have.
    pub fn length(&self) -> Duration {
        let first = |index: usize, warm_up: Duration| match self.warm_up_max {
            Some(max) if index == 0 => max,
            _ => warm_up,
        };
        let stages = self.stages.iter().enumerate().map(|(index, stage)| match *stage {
            Stage::Plateau { warm_up, duration, .. } => first(index, warm_up).saturating_add(duration),
            Stage::Ramp { duration, .. } => duration,
        });
        stages.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// How long it lasts without its first warm-up, in which nothing is judged.
    fn judged(&self) -> Duration {
        let cold = match self.stages.first() {
            Some(Stage::Plateau { warm_up, .. }) => self.warm_up_max.unwrap_or(*warm_up),
            _ => Duration::ZERO,
        };
        self.length().saturating_sub(cold)
    }

    pub(crate) fn think_time(&self) -> Duration {
        self.think.unwrap_or_default()
    }

    pub(crate) fn sends_spaced(&self) -> Spacing {
        self.spacing.unwrap_or_default()
    }

    pub(crate) fn slots(&self) -> usize {
        self.in_flight_max.unwrap_or(IN_FLIGHT_MAX)
    }

    pub(crate) fn queue_length(&self) -> usize {
        self.queue_max.unwrap_or(QUEUE_MAX)
    }

    fn new(kind: Loop) -> Self {
        Self {
            kind,
            stages: Vec::new(),
            warm_up_max: None,
            max_iterations: None,
            thresholds: Vec::new(),
            abort_below: None,
            think: None,
            spacing: None,
            in_flight_max: None,
            queue_max: None,
            stray: false,
        }
    }

    fn begin(self, level: f64) -> Self {
        if level == 0.0 { self } else { self.plateau(level) }
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let wrong = |text: &str| Err(LoadError::Shape(text.into()));
        if self.stray {
            return wrong("a warm-up and a duration belong to a plateau, and there is none before them");
        }
        if !self.stages.iter().any(|stage| matches!(stage, Stage::Plateau { .. })) {
            return wrong(
                "a load needs a plateau of more than 0 users or requests a second: what a ramp sees is not counted",
            );
        }
        if self.stages.len() > MAX_STAGES {
            return Err(LoadError::Shape(format!(
                "a load has at most {MAX_STAGES} stages, not {}",
                self.stages.len()
            )));
        }
        for stage in &self.stages {
            self.check_stage(stage)?;
        }
        if self.length() > MAX_LENGTH {
            let asked = self.length().as_secs_f64();
            return Err(LoadError::Shape(format!(
                "a load may last at most {} s with its warm-ups, not {asked} s",
                MAX_LENGTH.as_secs()
            )));
        }
        if self.max_iterations == Some(0) {
            return wrong("a load of 0 iterations measures nothing; leave the limit out or raise it");
        }
        self.check_warm_up_max()?;
        match self.kind {
            Loop::Closed => self.check_closed(),
            Loop::Open => self.check_open(),
        }?;
        limits::check(&self.thresholds, self.abort_below.as_ref(), self.judged())
    }

    fn check_stage(&self, stage: &Stage) -> Result<(), LoadError> {
        let (level, least, duration) = match *stage {
            Stage::Plateau { level, duration, .. } => (level, f64::MIN_POSITIVE, duration),
            Stage::Ramp { to, duration } => (to, 0.0, duration),
        };
        if duration.is_zero() {
            return Err(LoadError::Shape("each stage must last more than 0 s".into()));
        }
        let holds = match self.kind {
            Loop::Closed => level.fract() == 0.0 && level <= MAX_USERS as f64,
            Loop::Open => level <= MAX_RATE,
        };
        if level.is_finite() && level >= least && holds {
            return Ok(());
        }
        Err(LoadError::Shape(match self.kind {
            Loop::Closed => format!("a closed loop has 1 to {MAX_USERS} users, not {level}"),
            Loop::Open => {
                format!("an open loop sends more than 0 and at most {MAX_RATE} requests a second, not {level}")
            }
        }))
    }

    fn check_warm_up_max(&self) -> Result<(), LoadError> {
        match (self.warm_up_max, self.stages.first()) {
            (None, _) => Ok(()),
            (Some(max), Some(Stage::Plateau { warm_up, .. })) if max >= *warm_up => Ok(()),
            (Some(max), Some(Stage::Plateau { warm_up, .. })) => Err(LoadError::Shape(format!(
                "the warm-up lasts at least {warm_up:?} and at most {max:?}: raise the second or lower the first"
            ))),
            (Some(_), _) => Err(LoadError::Shape(
                "a warm-up whose end is decided from outside needs a plateau as the first stage".into(),
            )),
        }
    }

    fn check_closed(&self) -> Result<(), LoadError> {
        let only_open = |what: &str| {
            Err(LoadError::Shape(format!(
                "{what} is for an open loop; a closed one has users"
            )))
        };
        if self.spacing.is_some() {
            return only_open("the spacing of sends");
        }
        if self.in_flight_max.is_some() || self.queue_max.is_some() {
            return only_open("a bound on the requests under way or waiting");
        }
        if self.abort_below.is_some() {
            return only_open("a rate to fall below");
        }
        Ok(())
    }

    fn check_open(&self) -> Result<(), LoadError> {
        if self.think.is_some_and(|think| !think.is_zero()) {
            return Err(LoadError::Shape(
                "a think time is for a closed loop; an open one sends when the time has come".into(),
            ));
        }
        if !(1..=MAX_USERS).contains(&self.slots()) {
            return Err(LoadError::Shape(format!(
                "between 1 and {MAX_USERS} requests may be under way at once, not {}",
                self.slots()
            )));
        }
        Ok(())
    }
}
