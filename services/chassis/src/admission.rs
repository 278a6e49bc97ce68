//! Load shedding: how many requests are worked on at once, how many wait, and what the others are told.
//!
//! Beyond its capacity a service that takes everything only grows queues: each request gets slower until nobody waits
//! for its answer any more. Here the number in flight is bounded, a bounded number waits for a bounded time, and the rest
//! is refused at once, before its token is checked or a byte of its body is read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::StatusCode;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, UpDownCounter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::config::Common;
use crate::problem::Problem;
use crate::telemetry;

/// A wave of requests is usually over within a second.
const RETRY_AFTER: Duration = Duration::from_secs(1);

static SHED: LazyLock<Counter<u64>> = LazyLock::new(|| {
    telemetry::meter()
        .u64_counter("http.server.shed_requests")
        .with_description("Requests refused because too many were in flight, by reason")
        .with_unit("{request}")
        .build()
});
static QUEUED: LazyLock<UpDownCounter<i64>> = LazyLock::new(|| {
    telemetry::meter()
        .i64_up_down_counter("http.server.queued_requests")
        .with_description("Requests that wait for their turn")
        .with_unit("{request}")
        .build()
});
static WAITED: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    telemetry::duration_histogram(
        "http.server.queue.duration",
        "Time a request waited for its turn, if it had to",
    )
});

/// The bounds of one service.
pub(crate) struct Admission {
    /// None without a bound.
    slots: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    most_waiting: usize,
    longest_wait: Duration,
}

/// The right to work on a request, for as long as it is held; nothing to hold without a bound.
pub(crate) type Admitted = Option<OwnedSemaphorePermit>;

impl Admission {
    pub(crate) fn new(common: &Common) -> Self {
        Self {
            slots: (common.max_in_flight > 0).then(|| Arc::new(Semaphore::new(common.max_in_flight))),
            waiting: AtomicUsize::new(0),
            most_waiting: common.queue_max,
            longest_wait: *common.queue_timeout,
        }
    }

    /// At once while there is room, otherwise within the bound on waiting or not at all. First come, first served.
    pub(crate) async fn enter(&self) -> Result<Admitted, Problem> {
        let Some(slots) = &self.slots else {
            return Ok(None);
        };
        // Gives nothing while others wait: a slot that becomes free is theirs.
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return Ok(Some(slot));
        }
        let Some(_place) = Place::take(&self.waiting, self.most_waiting) else {
            return Err(shed("queue-full"));
        };
        let since = Instant::now();
        let slot = tokio::time::timeout(self.longest_wait, Arc::clone(slots).acquire_owned()).await;
        WAITED.record(since.elapsed().as_secs_f64(), &[]);
        match slot {
            Ok(slot) => Ok(Some(slot.expect("the semaphore is never closed"))),
            Err(_) => Err(shed("waited-too-long")),
        }
    }
}

/// A place in the queue, given back when dropped: also by a client that leaves.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                (now < most).then_some(now + 1)
            })
            .ok()?;
        QUEUED.add(1, &[]);
        Some(Self(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
        QUEUED.add(-1, &[]);
    }
}

fn shed(reason: &'static str) -> Problem {
    SHED.add(1, &[KeyValue::new("reason", reason)]);
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Overloaded")
        .detail("Too many requests are under way; this one was not looked at. Try again shortly.")
        .retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(in_flight: usize, waiting: usize, longest: &str) -> Arc<Admission> {
        Arc::new(Admission::new(&Common {
            max_in_flight: in_flight,
            queue_max: waiting,
            queue_timeout: longest.parse().expect("a duration"),
            ..Common::default()
        }))
    }

    #[tokio::test]
    async fn beyond_the_bounds_requests_are_refused_and_those_that_wait_come_in_turn() {
        let admission = bounds(1, 1, "1h");
        let first = admission.enter().await.expect("there is room");
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.enter().await }
        });
        while admission.waiting.load(Ordering::Acquire) == 0 {
            tokio::task::yield_now().await;
        }
        // At once: waiting would take an hour.
        assert!(admission.enter().await.is_err(), "the queue is full");
        drop(first);
        let second = waiting.await.expect("no panic").expect("its turn");
        drop(second);
        assert!(admission.enter().await.is_ok(), "and the next one finds room again");
    }

    #[tokio::test]
    async fn waiting_is_bounded_and_a_client_that_leaves_gives_its_place_back() {
        let admission = bounds(1, 1, "20ms");
        let _first = admission.enter().await.expect("there is room");
        let started = Instant::now();
        assert!(admission.enter().await.is_err());
        assert!(started.elapsed() >= Duration::from_millis(20), "it had its chance");
        let left = tokio::time::timeout(Duration::from_millis(1), admission.enter()).await;
        assert!(!matches!(left, Ok(Ok(_))));
        assert_eq!(admission.waiting.load(Ordering::Acquire), 0);
    }

    #[tokio::test]
    async fn zero_is_no_bound() {
        let admission = bounds(0, 0, "1h");
        for _ in 0..1000 {
            assert!(admission.enter().await.expect("no bound").is_none());
        }
    }
}
