//! Whole tours in Redis, by id. A tour never changes once it is committed, so nothing is ever invalidated.
//!
//! Redis may be away: a read then goes to PostgreSQL after [`BOUND`] at most.

use std::time::Duration;

use chassis::cache::BestEffort;
use deadpool_redis::Pool;
use deadpool_redis::redis::AsyncCommands as _;
use uuid::Uuid;

use crate::store::TourDocument;

/// Longest wait for Redis: several times what it takes on a busy machine, a fraction of what PostgreSQL would.
const BOUND: Duration = Duration::from_millis(100);

/// The cache.
pub(crate) struct TourCache {
    redis: BestEffort,
    ttl: Duration,
}

impl TourCache {
    pub(crate) fn new(pool: Pool, ttl: Duration) -> Self {
        Self {
            redis: BestEffort::new(pool, BOUND),
            ttl,
        }
    }

    /// The tour, if Redis has it and answers.
    pub(crate) async fn get(&self, id: Uuid) -> Option<TourDocument> {
        let found: Option<Vec<u8>> = self
            .redis
            .ask(async |connection| connection.get(key(id)).await)
            .await
            .ok()?;
        // What cannot be read was written by another version: PostgreSQL has it as well.
        serde_json::from_slice(&found?).ok()
    }

    /// Keeps the tour for its time to live, if Redis answers.
    pub(crate) async fn put(&self, id: Uuid, tour: &TourDocument) {
        let document = serde_json::to_vec(tour).expect("a document is texts, numbers and times");
        // Redis refuses a time to live of zero.
        let ttl = self.ttl.as_secs().max(1);
        let kept = self
            .redis
            .ask(async |connection| connection.set_ex::<_, _, ()>(key(id), document, ttl).await);
        // The next reader finds nothing and asks PostgreSQL again.
        let _ = kept.await;
    }
}

fn key(id: Uuid) -> String {
    format!("tour:{id}")
}
