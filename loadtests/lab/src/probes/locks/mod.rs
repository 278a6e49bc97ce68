//! Lock waits as a wait graph: who waits, for whom in the end, and for which row.
//!
//! Built for the ways in which lock tables mislead:
//! - Waiters on `tuple` are only the first generation. After one hand-over they wait on a `transactionid`, and
//!   `pg_locks` names neither relation nor row any more. Both are counted, and the row is found through the holder.
//! - A self-join of `pg_locks` counts pairs, not waits; `pg_blocking_pids` says who blocks whom.
//! - `waitstart` restarts with every generation, so the start of the waiter's statement is the start of its wait.
//! - An advisory lock has no relation; it is named by the two halves of its key.
//! - The holder's own statement is rarely the one that took the lock. What it waits for is recorded instead.
//!
//! `pg_blocking_pids` briefly takes the lock manager exclusively: sample, do not spin.

mod graph;
mod row;

use std::time::Instant;

use async_trait::async_trait;
use sqlx::PgPool;

use self::graph::Session;
use super::Probe;
use crate::events::{LockSample, Sample};

const SESSIONS: &str = "\
SELECT a.pid,
       coalesce(a.application_name, '') AS application,
       coalesce(a.state, '') AS state,
       CASE WHEN a.wait_event IS NULL THEN 'CPU' ELSE a.wait_event_type || '/' || a.wait_event END AS wait,
       coalesce(extract(epoch FROM clock_timestamp() - a.xact_start) * 1000, 0)::float8 AS transaction_age_ms,
       coalesce(extract(epoch FROM clock_timestamp() - a.query_start) * 1000, 0)::float8 AS statement_age_ms,
       coalesce(a.query, '') AS statement,
       CASE WHEN a.state = 'active' THEN pg_blocking_pids(a.pid) ELSE '{}' END AS blocked_by,
       l.locktype AS lock_type,
       CASE WHEN l.locktype = 'advisory' THEN format('advisory lock (%s, %s)', l.classid, l.objid)
            ELSE (SELECT relname::text FROM pg_class WHERE oid = l.relation) END AS relation,
       CASE WHEN l.tuple IS NOT NULL THEN format('(%s,%s)', l.page, l.tuple) END AS row_address
FROM pg_stat_activity a
LEFT JOIN LATERAL (
    SELECT locktype, relation, page, tuple, classid, objid FROM pg_locks WHERE pid = a.pid AND NOT granted LIMIT 1
) l ON true
WHERE a.datname = current_database() AND a.backend_type = 'client backend'
  AND a.state <> 'idle' AND a.pid <> pg_backend_pid()";

/// The probe.
pub(super) struct Locks {
    pool: PgPool,
}

impl Locks {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool }
    }
}

#[async_trait]
impl Probe for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        sample(&self.pool).await.map(Sample::Locks)
    }
}

/// The wait graph of the database that `pool` is connected to, as it is now.
///
/// # Errors
/// PostgreSQL does not answer. A row that cannot be named is not an error: it is left out.
pub(crate) async fn sample(pool: &PgPool) -> anyhow::Result<LockSample> {
    let began = Instant::now();
    let sessions: Vec<Session> = sqlx::query_as(SESSIONS).fetch_all(pool).await?;
    let mut sample = graph::build(&sessions);
    for root in &mut sample.roots {
        let Some(relation) = root.relation.clone() else {
            continue;
        };
        let address = graph::row_address(&sessions, &sample.waiters, root.pid);
        root.row = row::name(pool, &relation, root.pid, address.as_deref()).await;
    }
    sample.took_ms = began.elapsed().as_secs_f64() * 1000.0;
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::{Connection, Executor, PgConnection};

    use super::*;
    use crate::testing::Scratch;

    const TENANTS: &str = "\
CREATE TABLE tenant_config (id int PRIMARY KEY, tenant_key text UNIQUE, modified_at timestamptz);
INSERT INTO tenant_config SELECT n, 'TENANT' || n, now() FROM generate_series(1, 40) n;";

    /// The same table in a schema beside.
    const SHARD: &str = "\
CREATE SCHEMA shard_1;
CREATE TABLE shard_1.tenant_config (LIKE tenant_config INCLUDING ALL);
INSERT INTO shard_1.tenant_config SELECT * FROM tenant_config;";

    /// A session that holds the row of tenant 7 inside an open transaction.
    async fn holder(url: &str) -> PgConnection {
        let mut connection = PgConnection::connect(url).await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        connection
            .execute("UPDATE tenant_config SET modified_at = now() WHERE id = 7")
            .await
            .unwrap();
        connection.execute("SELECT 1").await.unwrap();
        connection
    }

    fn waiter(url: &str) -> tokio::task::JoinHandle<()> {
        let url = url.to_owned();
        tokio::spawn(async move {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            connection.execute("BEGIN").await.unwrap();
            connection
                .execute("UPDATE tenant_config SET modified_at = now() WHERE id = 7")
                .await
                .unwrap();
            // Keeps the lock until the test ends, as a service does over its 87 round trips.
            std::future::pending::<()>().await;
        })
    }

    async fn until(pool: &PgPool, what: &str, holds: impl Fn(&LockSample) -> bool) -> LockSample {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let seen = sample(pool).await.unwrap();
            if holds(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "never seen: {what}; last {seen:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn a_row_is_named_in_the_schema_that_its_holder_works_in() {
        let scratch = Scratch::create(&format!("{TENANTS}{SHARD}")).await;
        let pool = super::super::connect(&scratch.url).await.unwrap();
        let inside = format!("{}?options=-c%20search_path%3Dshard_1", scratch.url);
        let _holder = holder(&inside).await;
        let waiters = [waiter(&inside), waiter(&inside)];
        let seen = until(&pool, "2 waiters behind a named row", |s| {
            s.waiters.len() == 2 && s.roots.len() == 1 && s.roots[0].row.is_some()
        })
        .await;
        let root = &seen.roots[0];
        assert_eq!(root.relation.as_deref(), Some("tenant_config"));
        assert_eq!(root.row.as_deref(), Some("schema=shard_1, id=7, tenant_key=TENANT7"));
        for waiter in waiters {
            waiter.abort();
        }
        pool.close().await;
        scratch.drop_database().await;
    }

    #[tokio::test]
    async fn an_advisory_lock_is_named_by_its_key() {
        let scratch = Scratch::create(TENANTS).await;
        let pool = super::super::connect(&scratch.url).await.unwrap();
        let lock = "BEGIN; SELECT pg_advisory_xact_lock((5::bigint << 32) + 7)";
        let mut holder = PgConnection::connect(&scratch.url).await.unwrap();
        holder.execute(lock).await.unwrap();
        let url = scratch.url.clone();
        let waiter = tokio::spawn(async move {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            connection.execute(lock).await.unwrap();
        });
        let seen = until(&pool, "a waiter", |s| s.waiters.len() == 1 && s.roots.len() == 1).await;
        assert_eq!(seen.waiters[0].lock_type, "advisory");
        assert_eq!(seen.roots[0].relation.as_deref(), Some("advisory lock (5, 7)"));
        assert_eq!(seen.roots[0].row, None);
        holder.execute("COMMIT").await.unwrap();
        waiter.await.unwrap();
        pool.close().await;
        scratch.drop_database().await;
    }

    #[tokio::test]
    async fn root_row_and_all_waiters_are_found_in_the_first_and_in_later_lock_generations() {
        let scratch = Scratch::create(TENANTS).await;
        let pool = super::super::connect(&scratch.url).await.unwrap();
        let quiet = sample(&pool).await.unwrap();
        assert!(quiet.roots.is_empty() && quiet.waiters.is_empty(), "{quiet:?}");

        let mut holder = holder(&scratch.url).await;
        let waiters: Vec<_> = (0..8).map(|_| waiter(&scratch.url)).collect();
        let first = until(&pool, "8 waiters behind one root", |s| {
            s.waiters.len() == 8 && s.roots.len() == 1 && s.roots[0].row.is_some()
        })
        .await;
        let root = &first.roots[0];
        assert_eq!(
            (root.waiters, root.tuple_waiters, root.transactionid_waiters),
            (8, 7, 1)
        );
        assert_eq!(root.relation.as_deref(), Some("tenant_config"));
        assert_eq!(root.row.as_deref(), Some("id=7, tenant_key=TENANT7"));
        assert_eq!(
            (root.state.as_str(), root.wait.as_str()),
            ("idle in transaction", "Client/ClientRead")
        );
        assert_eq!(root.last_statement, "SELECT 1");
        assert!(
            root.waiting_statement
                .as_deref()
                .unwrap()
                .starts_with("UPDATE tenant_config")
        );

        holder.execute("COMMIT").await.unwrap();
        let second = until(&pool, "the next holder with 7 waiters", |s| {
            s.waiters.len() == 7 && s.roots.len() == 1 && s.roots[0].row.is_some()
        })
        .await;
        let root = &second.roots[0];
        assert_eq!(root.waiters, 7);
        assert!(
            root.transactionid_waiters > 1,
            "a later generation waits on transactions: {root:?}"
        );
        assert_eq!(root.row.as_deref(), Some("id=7, tenant_key=TENANT7"));

        for waiter in waiters {
            waiter.abort();
        }
        pool.close().await;
        scratch.drop_database().await;
    }
}
