//! A counter that PostgreSQL keeps of the database, from one look to the next.

use sqlx::PgPool;

/// What a query counts, and what it counted last.
pub(super) struct Counter {
    pool: PgPool,
    query: &'static str,
    counted: u64,
}

impl Counter {
    /// What happened before, in another load, does not count. The query gives one row with one number.
    pub(super) async fn new(pool: PgPool, query: &'static str) -> anyhow::Result<Self> {
        Ok(Self {
            counted: look(&pool, query).await?,
            pool,
            query,
        })
    }

    /// What was added since the last call.
    pub(super) async fn more(&mut self) -> anyhow::Result<u64> {
        let counted = look(&self.pool, self.query).await?;
        // The counters of a database that was lost in a crash begin at zero.
        let more = counted.saturating_sub(self.counted);
        self.counted = counted;
        Ok(more)
    }
}

async fn look(pool: &PgPool, query: &'static str) -> anyhow::Result<u64> {
    let counted: i64 = sqlx::query_scalar(query).fetch_one(pool).await?;
    Ok(u64::try_from(counted).unwrap_or(0))
}
