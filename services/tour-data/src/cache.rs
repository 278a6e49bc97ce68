//! Whole tours in Redis, by id. A tour never changes once it is committed, so nothing is ever invalidated.
//!
//! Redis may be away: a read then goes to PostgreSQL after [`BOUND`] at most, and for [`PAUSE`] nobody asks Redis, so
//! that an outage costs one short wait a second and not one a request.

use std::sync::Mutex;
use std::time::Duration;

use deadpool_redis::Pool;
use deadpool_redis::redis::AsyncCommands as _;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::store::TourDocument;

/// Longest wait for Redis: several times what it takes on a busy machine, a fraction of what PostgreSQL would.
const BOUND: Duration = Duration::from_millis(100);
/// How long Redis is left alone after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The cache.
pub(crate) struct TourCache {
    pool: Pool,
    ttl: Duration,
    paused_until: Mutex<Option<Instant>>,
}

impl TourCache {
    pub(crate) fn new(pool: Pool, ttl: Duration) -> Self {
        Self {
            pool,
            ttl,
            paused_until: Mutex::new(None),
        }
    }

    /// The tour, if Redis has it and answers.
    pub(crate) async fn get(&self, id: Uuid) -> Option<TourDocument> {
        let found: Option<Vec<u8>> = self
            .within_bound(async |pool| {
                let mut connection = pool.get().await.map_err(|error| error.to_string())?;
                connection.get(key(id)).await.map_err(|error| error.to_string())
            })
            .await
            .flatten();
        // What cannot be read was written by another version: PostgreSQL has it as well.
        serde_json::from_slice(&found?).ok()
    }

    /// Keeps the tour for its time to live, if Redis answers.
    pub(crate) async fn put(&self, id: Uuid, tour: &TourDocument) {
        let document = serde_json::to_vec(tour).expect("a document is texts, numbers and times");
        // Redis refuses a time to live of zero.
        let ttl = self.ttl.as_secs().max(1);
        self.within_bound(async |pool| {
            let mut connection = pool.get().await.map_err(|error| error.to_string())?;
            connection
                .set_ex::<_, _, ()>(key(id), document, ttl)
                .await
                .map_err(|error| error.to_string())
        })
        .await;
    }

    async fn within_bound<T>(&self, ask: impl AsyncFnOnce(&Pool) -> Result<T, String>) -> Option<T> {
        if self.paused() {
            return None;
        }
        let outcome = timeout(BOUND, ask(&self.pool))
            .await
            .unwrap_or_else(|_| Err(format!("no answer in {BOUND:?}")));
        outcome.inspect_err(|error| self.pause(error)).ok()
    }

    fn paused(&self) -> bool {
        self.paused_until
            .lock()
            .expect("nothing panics under this lock")
            .is_some_and(|until| Instant::now() < until)
    }

    fn pause(&self, error: &str) {
        tracing::warn!(
            error,
            pause_ms = PAUSE.as_millis() as u64,
            "reading from PostgreSQL, Redis does not answer"
        );
        *self.paused_until.lock().expect("nothing panics under this lock") = Some(Instant::now() + PAUSE);
    }
}

fn key(id: Uuid) -> String {
    format!("tour:{id}")
}
