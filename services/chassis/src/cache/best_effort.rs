//! Redis for what a service can do without.
//!
//! Every question is answered within a bound, and after one that was not, nobody asks for [`PAUSE`]: an outage costs one
//! short wait a second and not one a request.

use std::sync::Mutex;
use std::time::Duration;

use deadpool_redis::{Connection, Pool};
use redis::RedisResult;
use tokio::time::{Instant, timeout};

/// How long Redis is left alone after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// A pool that is not waited for.
pub struct BestEffort {
    pool: Pool,
    bound: Duration,
    paused_until: Mutex<Option<Instant>>,
}

/// Redis did not answer in time, or did not lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis does not answer")]
pub struct Away;

impl BestEffort {
    /// `bound` is the longest that one question takes, the wait for a connection included.
    pub fn new(pool: Pool, bound: Duration) -> Self {
        Self {
            pool,
            bound,
            paused_until: Mutex::new(None),
        }
    }

    /// Asks, unless Redis did not answer within the last second. The reason of a failure is logged here.
    pub async fn ask<T>(&self, question: impl AsyncFnOnce(&mut Connection) -> RedisResult<T>) -> Result<T, Away> {
        if self.is_paused() {
            return Err(Away);
        }
        let asked = timeout(self.bound, async {
            let mut connection = self.pool.get().await.map_err(|error| error.to_string())?;
            question(&mut connection).await.map_err(|error| error.to_string())
        });
        let outcome = asked
            .await
            .unwrap_or_else(|_| Err(format!("no answer in {:?}", self.bound)));
        outcome.map_err(|error| self.pause(&error))
    }

    fn is_paused(&self) -> bool {
        self.paused_until
            .lock()
            .expect("nothing panics under this lock")
            .is_some_and(|until| Instant::now() < until)
    }

    fn pause(&self, error: &str) -> Away {
        tracing::warn!(
            error,
            pause_ms = PAUSE.as_millis() as u64,
            "going on without Redis, which does not answer"
        );
        *self.paused_until.lock().expect("nothing panics under this lock") = Some(Instant::now() + PAUSE);
        Away
    }
}
