//! Transactions that were rolled back: work that was done in vain, and usually done again.

use async_trait::async_trait;
use sqlx::PgPool;

use super::Probe;
use super::counter::Counter;
use crate::events::{RollbackSample, Sample};

const COUNT: &str = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";

pub(super) struct Rollbacks(Counter);

impl Rollbacks {
    pub(super) async fn new(pool: PgPool) -> anyhow::Result<Self> {
        Ok(Self(Counter::new(pool, COUNT).await?))
    }
}

#[async_trait]
impl Probe for Rollbacks {
    fn name(&self) -> &'static str {
        "rollbacks"
    }

    /// A session adds to the counter when it comes to it.
    fn is_told_late(&self) -> bool {
        true
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let count = self.0.more().await?;
        Ok(Sample::Rollbacks(RollbackSample { count }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use sqlx::{Connection, Executor, PgConnection};

    use super::*;
    use crate::testing::Scratch;

    #[tokio::test]
    async fn what_was_rolled_back_since_the_last_sample_is_counted() {
        let scratch = Scratch::create("CREATE TABLE t (id int);").await;
        let pool = super::super::connect(&scratch.url).await.unwrap();
        let mut probe = Rollbacks::new(pool.clone()).await.unwrap();
        let mut session = PgConnection::connect(&scratch.url).await.unwrap();
        for end in ["ROLLBACK", "COMMIT", "ROLLBACK"] {
            session.execute("BEGIN").await.unwrap();
            session.execute("INSERT INTO t VALUES (1)").await.unwrap();
            session.execute(end).await.unwrap();
        }
        // Its session adds to the counters when it ends.
        session.close().await.unwrap();
        let (mut seen, begun) = (0, Instant::now());
        while seen < 2 && begun.elapsed() < Duration::from_secs(20) {
            let Sample::Rollbacks(sample) = probe.sample().await.unwrap() else {
                panic!("it samples something else");
            };
            seen += sample.count;
        }
        assert_eq!(seen, 2);
        pool.close().await;
        scratch.drop_database().await;
    }
}
