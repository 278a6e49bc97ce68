//! One run from its first to its last iteration: who is at work, what is told, and when it is over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use super::closed::Closed;
use super::handle::Handle;
use super::open::Open;
use super::pacer::Pacer;
use super::{Event, Events};
use crate::error::LoadError;
use crate::recorder::Recorder;
use crate::schedule::Phase;
use crate::shape::{Loop, Shape};
use crate::summary::{Second, Summary};
use crate::target::{Iteration, Target};

/// How long iterations under way at the end of the window may take to end.
const GRACE: Duration = Duration::from_secs(15);
/// A user whose iteration fails faster than this pauses, or a dead server would be hammered by a spinning loop.
const FAST_FAILURE: Duration = Duration::from_millis(1);
/// How long it pauses.
const BACK_OFF: Duration = Duration::from_millis(10);
/// How often the number of users is set anew in a ramp.
const RAMP_STEP: Duration = Duration::from_millis(20);

pub(super) async fn drive<T: Target>(
    target: Arc<T>,
    shape: &Shape,
    handle: &Handle,
    tell: &Events,
) -> Result<Summary, LoadError> {
    let pacer = Pacer::new()?;
    let shared = Arc::new(Shared::new(shape, target.parts(), tell));
    let mut users = JoinSet::new();
    loop {
        let step = shared.step(handle);
        for index in step.users {
            let pacer = (!shared.think.is_zero()).then(Pacer::new).transpose()?;
            users.spawn(user(Arc::clone(&target), index, Arc::clone(&shared), pacer));
        }
        let Some(boundary) = step.boundary else { break };
        if step.exhausted && users.is_empty() {
            shared.finish();
            break;
        }
        if let Some(send) = step.send {
            pacer.set(send.saturating_sub(shared.now()))?;
        }
        tokio::select! {
            fired = pacer.fired(), if step.send.is_some() => fired?,
            () = sleep_until((shared.start + boundary).into()) => {}
            Some(ended) = users.join_next() => ended.map_err(|_| LoadError::Panicked)?,
            () = handle.changed() => {}
        }
    }
    shared.idle.notify_waiters();
    let deadline = (Instant::now() + GRACE).into();
    while let Ok(Some(ended)) = timeout_at(deadline, users.join_next()).await {
        ended.map_err(|_| LoadError::Panicked)?;
    }
    // Counted before the abort: a user that is cut off cannot say so itself.
    let abandoned = shared.state().under_way as u64;
    users.shutdown().await;
    let shared = Arc::into_inner(shared).expect("every user has ended or was cut off");
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(state.recorder.summary(state.mode.most(), abandoned))
}

/// One virtual user, or one slot of an open loop, until there is nothing more for it to do. A user who thinks has a pacer: a
/// millisecond lost with each thought would be missing in Little's law.
async fn user<T: Target>(target: Arc<T>, index: usize, shared: Arc<Shared>, pacer: Option<Pacer>) {
    let mut user = None;
    let mut free_at = shared.now();
    while let Some(turn) = shared.turn(index, free_at).await {
        let iteration = match &mut user {
            Some(user) => target.iterate(user).await,
            None => match target.user(index).await {
                Ok(made) => target.iterate(user.insert(made)).await,
                Err(failure) => Iteration {
                    timed: Duration::ZERO,
                    outcome: Err(failure),
                },
            },
        };
        let ended = shared.now();
        let part = user.as_ref().map_or(0, |user| target.part(user));
        shared.record(&turn, ended, (&iteration, part));
        let pause = match iteration.outcome {
            _ if shared.open => Duration::ZERO,
            Err(_) if ended - turn.begun < FAST_FAILURE => shared.think.max(BACK_OFF),
            _ => shared.think,
        };
        free_at = ended;
        if !pause.is_zero() {
            shared
                .pause_until((ended + pause).min(shared.end()), pacer.as_ref())
                .await;
            free_at = shared.now();
        }
    }
}

/// One iteration that is to be made.
struct Turn {
    begun: Duration,
    /// How long after its time.
    waited: Duration,
}

/// What is to be done now, and when to look again.
struct Step {
    /// Users or slots to be made.
    users: Vec<usize>,
    /// When to look again at the latest; `None` when the run is over.
    boundary: Option<Duration>,
    /// The time of the next send.
    send: Option<Duration>,
    /// Nothing is begun any more; the run is over when what is under way has ended.
    exhausted: bool,
}

/// What the users of a run share. All of them live on one thread: the lock is never contended, it only makes the tasks
/// `Send`.
struct Shared {
    start: Instant,
    state: Mutex<State>,
    open: bool,
    think: Duration,
    /// Where the slots of an open loop wait.
    idle: Notify,
    tell: Events,
}

struct State {
    recorder: Recorder,
    mode: Mode,
    started: u64,
    limit: u64,
    under_way: usize,
    stopped: bool,
}

enum Mode {
    Closed(Closed),
    Open(Box<Open>),
}

impl Mode {
    fn most(&self) -> usize {
        match self {
            Self::Closed(closed) => closed.most(),
            Self::Open(open) => open.most(),
        }
    }
}

impl State {
    fn exhausted(&self) -> bool {
        let begins_none = self.stopped || self.started >= self.limit;
        match &self.mode {
            Mode::Closed(_) => begins_none,
            Mode::Open(open) => open.exhausted(),
        }
    }

    fn over(&self) -> bool {
        self.recorder.boundary().is_none()
    }
}

impl Shared {
    fn new(shape: &Shape, parts: Vec<String>, tell: &Events) -> Self {
        let recorder = Recorder::new(shape, parts);
        let open = shape.kind == Loop::Open;
        let mode = if open {
            Mode::Open(Box::new(Open::new(shape, &recorder)))
        } else {
            Mode::Closed(Closed::new())
        };
        Self {
            start: Instant::now(),
            state: Mutex::new(State {
                recorder,
                mode,
                started: 0,
                limit: shape.max_iterations.unwrap_or(u64::MAX),
                under_way: 0,
                stopped: false,
            }),
            open,
            think: shape.think_time(),
            idle: Notify::new(),
            tell: tell.clone(),
        }
    }

    /// Time since the start.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn pause_until(&self, until: Duration, pacer: Option<&Pacer>) {
        if let Some(pacer) = pacer
            && pacer.set(until.saturating_sub(self.now())).is_ok()
            && pacer.fired().await.is_ok()
        {
            return;
        }
        sleep_until((self.start + until).into()).await;
    }

    fn end(&self) -> Duration {
        self.state().recorder.schedule().end()
    }

    /// Brings everything to the present.
    fn step(&self, handle: &Handle) -> Step {
        let now = self.now();
        let mut state = self.state();
        let state = &mut *state;
        let mut tell = |second| self.tell(second);
        if handle.window_begins() {
            state.recorder.begin_window(now, &mut tell);
        }
        state.recorder.advance(now, &mut tell);
        state.stopped = handle.stopped();
        let (mut boundary, over) = (state.recorder.boundary(), state.over());
        let users = match &mut state.mode {
            Mode::Closed(_) if over || state.stopped => Vec::new(),
            Mode::Closed(closed) => {
                let schedule = state.recorder.schedule();
                let ramps = schedule.at(now).is_some_and(|segment| segment.phase == Phase::Ramp);
                boundary = boundary.map(|boundary| if ramps { boundary.min(now + RAMP_STEP) } else { boundary });
                closed.set(schedule.level_at(now).round() as usize)
            }
            Mode::Open(open) if over || state.stopped => {
                open.close(now, &mut state.recorder);
                self.idle.notify_waiters();
                Vec::new()
            }
            Mode::Open(open) => {
                state.started += open.come(now, state.limit - state.started, &mut state.recorder);
                for _ in 0..open.takers() {
                    // The one that waited least: a light load then uses few connections.
                    self.idle.notify_last();
                }
                if open.exhausted() {
                    self.idle.notify_waiters();
                }
                open.missing()
            }
        };
        Step {
            users,
            boundary,
            send: match &state.mode {
                Mode::Open(open) => open.next(),
                Mode::Closed(_) => None,
            },
            exhausted: state.exhausted(),
        }
    }

    /// The next iteration of a user who has been free since then; `None` when there is none for it.
    async fn turn(&self, index: usize, free_at: Duration) -> Option<Turn> {
        if !self.open {
            return self.start_next(index, free_at);
        }
        loop {
            if let Some(turn) = self.take_send()? {
                return Some(turn);
            }
            self.idle.notified().await;
        }
    }

    fn start_next(&self, index: usize, now: Duration) -> Option<Turn> {
        let mut state = self.state();
        let over = state.exhausted() || now >= state.recorder.schedule().end() || state.over();
        let Mode::Closed(closed) = &mut state.mode else {
            return None;
        };
        if over || !closed.goes_on(index) {
            return None;
        }
        state.started += 1;
        state.under_way += 1;
        Some(Turn {
            begun: now,
            waited: Duration::ZERO,
        })
    }

    /// A send for a free slot: one, none yet, or none ever again.
    fn take_send(&self) -> Option<Option<Turn>> {
        let mut state = self.state();
        let state = &mut *state;
        if state.exhausted() || state.over() {
            return None;
        }
        let Mode::Open(open) = &mut state.mode else { return None };
        let Some(send) = open.take() else { return Some(None) };
        let begun = self.now();
        if let Some(sends) = state.recorder.sends() {
            sends.sent(&send, begun);
        }
        state.under_way += 1;
        Some(Some(Turn {
            begun,
            waited: begun.saturating_sub(send.intended),
        }))
    }

    fn record(&self, turn: &Turn, ended: Duration, iteration: (&Iteration, usize)) {
        let mut state = self.state();
        state.under_way -= 1;
        if let Mode::Open(open) = &mut state.mode {
            open.ended();
        }
        state
            .recorder
            .record(turn.begun, turn.waited, ended, iteration, &mut |second| {
                self.tell(second);
            });
    }

    fn finish(&self) {
        let now = self.now();
        self.state().recorder.finish(now, &mut |second| self.tell(second));
    }

    fn tell(&self, second: Second) {
        // A caller that has lost interest is noticed by `engine`.
        let _ = self.tell.send(Event::Second(second));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
