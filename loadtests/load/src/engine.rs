//! Runs a load on a thread of its own.

mod closed;
mod drive;
mod handle;
mod open;
mod pacer;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::error::LoadError;
use crate::shape::Shape;
use crate::summary::{Second, Summary};
use crate::target::Target;

pub use handle::Handle;

/// Puts `target` under a load of `shape`; `on_second` is called for each second soon after it has ended, warm-up
/// included.
///
/// The load runs on a thread of its own. It ends by itself, or, when the future is dropped, at once and without a result.
pub async fn run<T: Target>(
    target: Arc<T>,
    shape: &Shape,
    on_second: impl FnMut(&Second) + Send,
) -> Result<Summary, LoadError> {
    run_with(target, shape, &Handle::default(), on_second).await
}

/// The same, with a handle that decides on it while it runs.
pub async fn run_with<T: Target>(
    target: Arc<T>,
    shape: &Shape,
    handle: &Handle,
    mut on_second: impl FnMut(&Second) + Send,
) -> Result<Summary, LoadError> {
    shape.check()?;
    let (shape, handle) = (shape.clone(), handle.clone());
    let (tell, mut events) = mpsc::unbounded_channel();
    // Dropped together with this future; the engine sees it and stops.
    let (_alive, dropped) = watch::channel(());
    let builder = std::thread::Builder::new().name("load".into());
    builder.spawn(move || {
        let result = engine(target, &shape, &handle, &tell, dropped);
        // Nobody listens only when the caller has lost interest.
        let _ = tell.send(Event::Done(Box::new(result)));
    })?;
    loop {
        match events.recv().await {
            Some(Event::Second(second)) => on_second(&second),
            Some(Event::Done(result)) => return *result,
            // The thread ended without a word: its runtime itself panicked.
            None => return Err(LoadError::Panicked),
        }
    }
}

enum Event {
    Second(Second),
    Done(Box<Result<Summary, LoadError>>),
}

type Events = mpsc::UnboundedSender<Event>;

fn engine<T: Target>(
    target: Arc<T>,
    shape: &Shape,
    handle: &Handle,
    tell: &Events,
    mut dropped: watch::Receiver<()>,
) -> Result<Summary, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            result = drive::drive(target, shape, handle, tell) => result,
            // The value never changes: this ends when the sender is gone, and then nobody reads the result.
            _ = dropped.changed() => Err(LoadError::Panicked),
        }
    })
}
