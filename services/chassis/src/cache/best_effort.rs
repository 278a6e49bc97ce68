//! Redis for what a service can do without.
//!
//! Every question is answered within a bound, and after one that was not, nobody asks for [`PAUSE`]: an outage costs one
//! short wait a second and not one a request.
//!
//! All questions share one connection, which pipelines them. Taking one from the pool for each would cost a `PING` a
//! question, as many round trips again.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use deadpool_redis::{Connection, Pool};
use redis::RedisResult;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, timeout};

/// How long Redis is left alone after it did not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// A pool that is not waited for.
pub struct BestEffort {
    pool: Pool,
    bound: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    paused_until: Option<Instant>,
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
            state: Mutex::default(),
        }
    }

    /// Asks, unless Redis did not answer within the last second. The reason of a failure is logged here.
    pub async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T, Away> {
        if self.state().paused_until.is_some_and(|until| Instant::now() < until) {
            return Err(Away);
        }
        let asked = timeout(self.bound, async {
            let mut connection = self.connection().await?;
            question(&mut connection).await.map_err(|error| error.to_string())
        });
        let outcome = asked
            .await
            .unwrap_or_else(|_| Err(format!("no answer in {:?}", self.bound)));
        outcome.map_err(|error| self.pause(&error))
    }

    async fn connection(&self) -> Result<MultiplexedConnection, String> {
        if let Some(connection) = &self.state().connection {
            return Ok(MultiplexedConnection::clone(connection));
        }
        let connection = self.pool.get().await.map_err(|error| error.to_string())?;
        let shared = MultiplexedConnection::clone(&connection);
        self.state().connection = Some(connection);
        Ok(shared)
    }

    /// The connection goes back to the pool, which tests it before it gives it out again.
    fn pause(&self, error: &str) -> Away {
        tracing::warn!(
            error,
            pause_ms = PAUSE.as_millis() as u64,
            "going on without Redis, which does not answer"
        );
        *self.state() = State {
            connection: None,
            paused_until: Some(Instant::now() + PAUSE),
        };
        Away
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}
