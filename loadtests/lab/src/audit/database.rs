//! The service's own invariants, as SQL that returns violations; the lab knows none of its tables.
//!
//! Each file is one SELECT of `(subject, detail)`; no row means that the invariant holds. It may read what the lab
//! puts beside the service's tables: `acknowledged`, `delivered` and `expectation`.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::Context;
use sqlx::postgres::PgPoolCopyExt;
use sqlx::{AssertSqlSafe, PgPool};

use super::ledger::Closed;
use super::{EXAMPLES, Expected, verdict};
use crate::facts::{AuditFile, Promise};
use crate::results::AuditCheck;

/// Invariants under a name with this prefix hold only where readers are promised the exact configuration.
const EXACT: &str = "exact-";

const TABLES: [&str; 4] = [
    "CREATE SCHEMA rowlock_audit",
    "CREATE TABLE rowlock_audit.raw (tour_id uuid, sent_at_ms bigint, acked_at_ms bigint, rows int, idempotency_key text)",
    "CREATE TABLE rowlock_audit.delivered (message_id text, copies int)",
    "CREATE TABLE rowlock_audit.expectation (rows_per_tour int)",
];

const ACKNOWLEDGED: &str = "\
CREATE TABLE rowlock_audit.acknowledged AS
SELECT tour_id, idempotency_key, rows,
       to_timestamp(sent_at_ms / 1000.0) AS sent_at, to_timestamp(acked_at_ms / 1000.0) AS acked_at
FROM rowlock_audit.raw";

/// Runs every invariant in the database at `url`.
///
/// # Errors
/// PostgreSQL does not answer, or a file is not a SELECT of two columns.
pub(super) async fn check(
    url: &str,
    files: &[AuditFile],
    promise: &Promise,
    acknowledged: &Closed,
    delivered: &BTreeMap<String, u32>,
    expected: &Expected,
) -> anyhow::Result<Vec<AuditCheck>> {
    let pool = crate::probes::connect(url).await?;
    let checked = async {
        witnesses(&pool, acknowledged, delivered, expected)
            .await
            .context("cannot load the witnesses")?;
        let mut checks = Vec::with_capacity(files.len());
        for file in files
            .iter()
            .filter(|file| promise.config == "exact" || !file.name.starts_with(EXACT))
        {
            checks.push(invariant(&pool, file).await?);
        }
        anyhow::Ok(checks)
    }
    .await;
    let dropped = sqlx::query("DROP SCHEMA IF EXISTS rowlock_audit CASCADE")
        .execute(&pool)
        .await;
    pool.close().await;
    dropped?;
    checked
}

async fn witnesses(
    pool: &PgPool,
    acknowledged: &Closed,
    delivered: &BTreeMap<String, u32>,
    expected: &Expected,
) -> anyhow::Result<()> {
    sqlx::query("DROP SCHEMA IF EXISTS rowlock_audit CASCADE")
        .execute(pool)
        .await?;
    for table in TABLES {
        sqlx::query(table).execute(pool).await?;
    }
    sqlx::query("INSERT INTO rowlock_audit.expectation VALUES ($1)")
        .bind(expected.rows_per_tour.map(i32::try_from).transpose()?)
        .execute(pool)
        .await?;

    let mut copy = pool
        .copy_in_raw("COPY rowlock_audit.raw FROM STDIN (FORMAT csv)")
        .await?;
    let mut file = acknowledged.open()?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            read => copy.send(&chunk[..read]).await?,
        };
    }
    copy.finish().await?;
    sqlx::query(ACKNOWLEDGED).execute(pool).await?;

    let (ids, copies): (Vec<&str>, Vec<i32>) = delivered
        .iter()
        .map(|(id, copies)| (id.as_str(), i32::try_from(*copies).unwrap_or(i32::MAX)))
        .unzip();
    sqlx::query("INSERT INTO rowlock_audit.delivered SELECT * FROM unnest($1::text[], $2::int[])")
        .bind(ids)
        .bind(copies)
        .execute(pool)
        .await?;
    sqlx::query("ANALYZE rowlock_audit.acknowledged, rowlock_audit.delivered")
        .execute(pool)
        .await?;
    Ok(())
}

async fn invariant(pool: &PgPool, file: &AuditFile) -> anyhow::Result<AuditCheck> {
    let sql = std::fs::read_to_string(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
    let sql = sql.trim_end().trim_end_matches(';');
    // The file ships with the product; it is wrapped, not composed from input.
    let counted = format!(
        "SELECT subject::text, detail::text, count(*) OVER () FROM (\n{sql}\n) AS violation (subject, detail) LIMIT {EXAMPLES}"
    );
    let mut transaction = pool.begin().await?;
    sqlx::query("SET LOCAL search_path = rowlock_audit, public")
        .execute(&mut *transaction)
        .await?;
    let rows: Vec<(String, String, i64)> = sqlx::query_as(AssertSqlSafe(counted))
        .fetch_all(&mut *transaction)
        .await
        .with_context(|| format!("the invariant {} cannot be checked", file.path.display()))?;
    let violations = rows.first().map_or(0, |(_, _, all)| u64::try_from(*all).unwrap_or(0));
    let examples = rows
        .into_iter()
        .map(|(subject, detail, _)| format!("{subject}: {detail}"))
        .collect();
    Ok(verdict(&file.name, &file.says, violations, examples))
}
