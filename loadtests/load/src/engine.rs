//! The closed loop: virtual users as tasks of one thread.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout_at};

use crate::error::LoadError;
use crate::recorder::Recorder;
use crate::shape::Closed;
use crate::summary::{Second, Summary};
use crate::target::{Iteration, Target};

/// How long iterations under way at the end of the window may take to end.
const GRACE: Duration = Duration::from_secs(15);
/// A user whose iteration fails faster than this pauses, or a dead server would be hammered by a spinning loop.
const FAST_FAILURE: Duration = Duration::from_millis(1);
/// How long it pauses.
const BACK_OFF: Duration = Duration::from_millis(10);

/// Puts `target` under a load of `shape`; `on_second` is called for each second soon after it has ended, warm-up
/// included.
///
/// The load runs on a thread of its own. It ends by itself, or, when the future is dropped, at once and without a result.
pub async fn run<T: Target>(
    target: Arc<T>,
    shape: &Closed,
    on_second: impl FnMut(&Second) + Send,
) -> Result<Summary, LoadError> {
    run_until(target, shape, std::future::pending(), on_second).await
}

/// The same, ended early when `enough` is ready: no iteration is started any more, and the window closes with the last
/// one that ends.
pub async fn run_until<T: Target>(
    target: Arc<T>,
    shape: &Closed,
    enough: impl Future<Output = ()>,
    mut on_second: impl FnMut(&Second) + Send,
) -> Result<Summary, LoadError> {
    shape.check()?;
    let shape = shape.clone();
    let (tell, mut events) = mpsc::unbounded_channel();
    let stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&stopped);
    // Dropped together with this future; the engine sees it and stops.
    let (_alive, dropped) = watch::channel(());
    let builder = std::thread::Builder::new().name("load".into());
    builder.spawn(move || {
        let result = engine(target, &shape, &stopped, &tell, dropped);
        // Nobody listens only when the caller has lost interest.
        let _ = tell.send(Event::Done(result));
    })?;
    let mut enough = std::pin::pin!(enough);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = &mut enough, if !stop.load(Ordering::Relaxed) => {
                stop.store(true, Ordering::Relaxed);
                continue;
            }
        };
        match event {
            Some(Event::Second(second)) => on_second(&second),
            Some(Event::Done(result)) => return result,
            // The thread ended without a word: its runtime itself panicked.
            None => return Err(LoadError::Panicked),
        }
    }
}

enum Event {
    Second(Second),
    Done(Result<Summary, LoadError>),
}

type Events = mpsc::UnboundedSender<Event>;

fn engine<T: Target>(
    target: Arc<T>,
    shape: &Closed,
    stopped: &Arc<AtomicBool>,
    tell: &Events,
    mut dropped: watch::Receiver<()>,
) -> Result<Summary, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            result = drive(target, shape, stopped, tell) => result,
            // The value never changes: this ends when the sender is gone, and then nobody reads the result.
            _ = dropped.changed() => Err(LoadError::Panicked),
        }
    })
}

async fn drive<T: Target>(
    target: Arc<T>,
    shape: &Closed,
    stopped: &Arc<AtomicBool>,
    tell: &Events,
) -> Result<Summary, LoadError> {
    let start = Instant::now();
    let shared = Arc::new(Shared {
        recorder: Mutex::new(Recorder::new(shape, start)),
        started: AtomicU64::new(0),
        under_way: AtomicUsize::new(0),
        limit: shape.max_iterations.unwrap_or(u64::MAX),
        stopped: Arc::clone(stopped),
        end: start + shape.warm_up + shape.duration,
        think: shape.think,
        tell: tell.clone(),
    });
    let mut users = JoinSet::new();
    for index in 0..shape.users {
        users.spawn(user(Arc::clone(&target), index, Arc::clone(&shared)));
    }
    while let Some(boundary) = shared.boundary() {
        tokio::select! {
            () = sleep_until(boundary.into()) => shared.advance(),
            ended = users.join_next() => match ended {
                Some(Ok(())) => {}
                Some(Err(_)) => return Err(LoadError::Panicked),
                None => shared.finish(),
            },
        }
    }
    let deadline = (Instant::now() + GRACE).into();
    while let Ok(Some(ended)) = timeout_at(deadline, users.join_next()).await {
        ended.map_err(|_| LoadError::Panicked)?;
    }
    // Counted before the abort: a user that is cut off cannot say so itself.
    let abandoned = shared.under_way.load(Ordering::Relaxed) as u64;
    users.shutdown().await;
    let shared = Arc::into_inner(shared).expect("every user has ended or was cut off");
    let recorder = shared.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(recorder.summary(abandoned))
}

/// One virtual user, until the window has closed or the limit is reached.
async fn user<T: Target>(target: Arc<T>, index: usize, shared: Arc<Shared>) {
    let mut user = None;
    let mut begun = Instant::now();
    while shared.may_start(begun) {
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
        let ended = Instant::now();
        shared.record(begun, ended, &iteration);
        let pause = match iteration.outcome {
            Err(_) if ended - begun < FAST_FAILURE => shared.think.max(BACK_OFF),
            _ => shared.think,
        };
        begun = ended;
        if !pause.is_zero() {
            sleep_until((ended + pause).min(shared.end).into()).await;
            begun = Instant::now();
        }
    }
}

/// What the users of a run share. All of them live on one thread: the lock and the atomics are never contended, they
/// only make the tasks `Send`.
struct Shared {
    recorder: Mutex<Recorder>,
    started: AtomicU64,
    under_way: AtomicUsize,
    limit: u64,
    /// Whoever asked for the load has seen enough.
    stopped: Arc<AtomicBool>,
    end: Instant,
    think: Duration,
    tell: Events,
}

impl Shared {
    /// Takes one iteration from the limit, unless it or the time is used up.
    fn may_start(&self, now: Instant) -> bool {
        let used_up = self.started.load(Ordering::Relaxed) >= self.limit;
        if now >= self.end || used_up || self.stopped.load(Ordering::Relaxed) {
            return false;
        }
        self.started.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn record(&self, begun: Instant, ended: Instant, iteration: &Iteration) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.recorder()
            .record(begun, ended, iteration, &mut |second| self.tell(second));
    }

    fn boundary(&self) -> Option<Instant> {
        self.recorder().boundary()
    }

    fn advance(&self) {
        self.recorder().advance(Instant::now(), &mut |second| self.tell(second));
    }

    fn finish(&self) {
        self.recorder().finish(Instant::now(), &mut |second| self.tell(second));
    }

    fn tell(&self, second: Second) {
        // A caller that has lost interest is noticed by `engine`.
        let _ = self.tell.send(Event::Second(second));
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
