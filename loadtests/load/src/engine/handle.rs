//! What is decided from outside while a load runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Decides on a load while it runs, from any thread: when its warm-up is over, and when enough was seen.
///
/// A handle belongs to one run. What was decided before the run began holds from its start.
#[derive(Debug, Clone, Default)]
pub struct Handle {
    decided: Arc<Decided>,
}

#[derive(Debug, Default)]
struct Decided {
    begin_window: AtomicBool,
    stop: AtomicBool,
    changed: Notify,
}

impl Handle {
    /// Ends the warm-up of the first plateau, of a shape that leaves that open
    /// ([`Shape::warm_up_max`](crate::Shape::warm_up_max)): at once, or when its least length is over.
    pub fn begin_window(&self) {
        self.decided.begin_window.store(true, Ordering::Release);
        self.decided.changed.notify_one();
    }

    /// Ends the load: no iteration is started any more, and the window closes with the last one that ends.
    pub fn stop(&self) {
        self.decided.stop.store(true, Ordering::Release);
        self.decided.changed.notify_one();
    }

    pub(super) fn window_begins(&self) -> bool {
        self.decided.begin_window.load(Ordering::Acquire)
    }

    pub(super) fn stopped(&self) -> bool {
        self.decided.stop.load(Ordering::Acquire)
    }

    /// Ready when something was decided since the last call was ready.
    pub(super) async fn changed(&self) {
        self.decided.changed.notified().await;
    }
}
