//! The service's own invariants, as SQL that returns violations; the lab knows none of its tables.
//!
//! Each file is one SELECT of `(subject, detail)`; no row means that the invariant holds. Where a service keeps its tables in
//! several schemas, a file sees the rows of all of them under the table's name, with `tableoid` and `xmin` of where they really
//! are. It may read what the lab puts beside the service's tables: `acknowledged`, `delivered`, `expectation` and `crash`, which holds the crashes that the
//! server declares to lose commits in.
//!
//! A file whose name begins with `lost-` selects acknowledged tours that are not there, by their ids. Those that a crash may
//! have cost as declared are counted, and taken out of `acknowledged` and `delivered` before the other files look. One whose
//! name begins with `message-` selects tours without their message, by their ids; those whose message may be lost as declared
//! are counted.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::Context;
use sqlx::postgres::PgPoolCopyExt;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::declared::{Declaration, Missing};
use super::delivery::Delivery;
use super::ledger::Closed;
use super::{EXAMPLES, verdict};
use crate::facts::{AuditFile, Promise};
use crate::results::AuditCheck;

/// Invariants under a name with this prefix hold only where readers are promised the exact configuration, from its row.
const EXACT: &str = "exact-";

/// Files under a name with this prefix select what is missing.
const LOST: &str = "lost-";

/// Files under a name with this prefix select what was not announced.
const MESSAGE: &str = "message-";

const TABLES: [&str; 5] = [
    "CREATE SCHEMA rowlock_audit",
    "CREATE TABLE rowlock_audit.raw (tour_id uuid, sent_at_ms bigint, acked_at_ms bigint, rows int, \
     tenant text, info text, idempotency_key text)",
    "CREATE TABLE rowlock_audit.delivered (message_id text, copies int)",
    "CREATE TABLE rowlock_audit.expectation (rows_per_tour int)",
    "CREATE TABLE rowlock_audit.crash (began_at timestamptz, ended_at timestamptz)",
];

const ACKNOWLEDGED: &str = "\
CREATE TABLE rowlock_audit.acknowledged AS
SELECT tour_id, idempotency_key, tenant, rows,
       to_timestamp(sent_at_ms / 1000.0) AS sent_at, to_timestamp(acked_at_ms / 1000.0) AS acked_at
FROM rowlock_audit.raw";

/// For each table name of several schemas the SELECT that unites its rows. Whatever else may name a schema of its own (an
/// extension, the server) is none that a service's statement finds without naming it.
const UNITED: &str = "\
SELECT format('CREATE VIEW rowlock_audit.%I AS ', tablename)
       || string_agg(format('SELECT tableoid, xmin, * FROM %I.%I', schemaname, tablename), ' UNION ALL '
                     ORDER BY schemaname <> 'public', schemaname)
FROM pg_tables
WHERE schemaname !~ '^pg_' AND schemaname NOT IN ('information_schema', 'rowlock_audit')
GROUP BY tablename
HAVING bool_or(schemaname <> 'public')";

/// What the other witnesses say.
pub(super) struct Witnesses<'a> {
    pub(super) acknowledged: &'a Closed,
    /// Message id → copies.
    pub(super) delivered: &'a BTreeMap<String, u32>,
    /// `None` when the tours of the load had different numbers of rows.
    pub(super) rows_per_tour: Option<u32>,
    pub(super) declaration: &'a Declaration,
    pub(super) delivery: &'a Delivery<'a>,
}

/// What was found in one database.
pub(super) struct Found {
    pub(super) checks: Vec<AuditCheck>,
    /// Acknowledged tours that are missing as declared.
    pub(super) declared: Vec<Uuid>,
    /// Acknowledged tours whose message is missing as declared.
    pub(super) unannounced: u64,
}

/// Runs every invariant in the database at `url`.
///
/// # Errors
/// PostgreSQL does not answer, or a file is not a SELECT of two columns.
pub(super) async fn check(
    url: &str,
    files: &[AuditFile],
    promise: &Promise,
    witnesses: &Witnesses<'_>,
) -> anyhow::Result<Found> {
    let pool = crate::probes::connect(url).await?;
    let checked = async {
        load(&pool, witnesses).await.context("cannot load the witnesses")?;
        let mut found = Found {
            checks: Vec::with_capacity(files.len()),
            declared: Vec::new(),
            unannounced: 0,
        };
        let (lost, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.name.starts_with(LOST));
        for file in lost {
            let (declared, undeclared) = witnesses.declaration.split(missing(&pool, file).await?);
            let declared: Vec<Uuid> = declared.into_iter().map(|each| each.tour_id).collect();
            forgive(&pool, &declared).await?;
            found.declared.extend(declared);
            found.checks.push(absent(file, &undeclared));
        }
        for file in others
            .into_iter()
            .filter(|file| (promise.config == "exact" && promise.kept == "row") || !file.name.starts_with(EXACT))
        {
            if file.name.starts_with(MESSAGE) {
                let (declared, undeclared) = witnesses.delivery.split(missing(&pool, file).await?);
                found.unannounced += declared.len() as u64;
                found.checks.push(absent(file, &undeclared));
            } else {
                found.checks.push(invariant(&pool, file).await?);
            }
        }
        anyhow::Ok(found)
    }
    .await;
    let dropped = sqlx::query("DROP SCHEMA IF EXISTS rowlock_audit CASCADE")
        .execute(&pool)
        .await;
    pool.close().await;
    dropped?;
    checked
}

async fn load(pool: &PgPool, witnesses: &Witnesses<'_>) -> anyhow::Result<()> {
    sqlx::query("DROP SCHEMA IF EXISTS rowlock_audit CASCADE")
        .execute(pool)
        .await?;
    for table in TABLES {
        sqlx::query(table).execute(pool).await?;
    }
    let views: Vec<String> = sqlx::query_scalar(UNITED).fetch_all(pool).await?;
    for view in views {
        // The names in it were quoted by the server.
        sqlx::query(AssertSqlSafe(view)).execute(pool).await?;
    }
    sqlx::query("INSERT INTO rowlock_audit.expectation VALUES ($1)")
        .bind(witnesses.rows_per_tour.map(i32::try_from).transpose()?)
        .execute(pool)
        .await?;

    let mut copy = pool
        .copy_in_raw("COPY rowlock_audit.raw FROM STDIN (FORMAT csv)")
        .await?;
    let mut file = witnesses.acknowledged.open()?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            read => copy.send(&chunk[..read]).await?,
        };
    }
    copy.finish().await?;
    sqlx::query(ACKNOWLEDGED).execute(pool).await?;

    let (ids, copies): (Vec<&str>, Vec<i32>) = witnesses
        .delivered
        .iter()
        .map(|(id, copies)| (id.as_str(), i32::try_from(*copies).unwrap_or(i32::MAX)))
        .unzip();
    sqlx::query("INSERT INTO rowlock_audit.delivered SELECT * FROM unnest($1::text[], $2::int[])")
        .bind(ids)
        .bind(copies)
        .execute(pool)
        .await?;
    for crash in &witnesses.declaration.crashes {
        let [began, ended] = crash.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        sqlx::query("INSERT INTO rowlock_audit.crash SELECT to_timestamp($1 / 1000.0), to_timestamp($2 / 1000.0)")
            .bind(began)
            .bind(ended)
            .execute(pool)
            .await?;
    }
    sqlx::query("ANALYZE rowlock_audit.acknowledged, rowlock_audit.delivered")
        .execute(pool)
        .await?;
    Ok(())
}

/// The verdict on what is missing and was not declared.
fn absent(file: &AuditFile, undeclared: &[Missing]) -> AuditCheck {
    let examples = undeclared.iter().take(EXAMPLES);
    let examples = examples.map(|each| format!("tour {}: {}", each.tour_id, each.detail));
    verdict(&file.name, &file.says, undeclared.len() as u64, examples.collect())
}

/// The acknowledged tours that `file` does not find.
async fn missing(pool: &PgPool, file: &AuditFile) -> anyhow::Result<Vec<Missing>> {
    let sql = read(file)?;
    // The file ships with the product; it is wrapped, not composed from input.
    let timed = format!(
        "SELECT raw.tour_id, raw.sent_at_ms, raw.acked_at_ms, lost.detail::text FROM (\n{sql}\n) AS lost (subject, detail) \
         JOIN rowlock_audit.raw ON raw.tour_id::text = lost.subject::text"
    );
    let rows: Vec<(Uuid, i64, i64, String)> = select(pool, file, timed).await?;
    let missing = rows.into_iter().map(|(tour_id, sent, acked, detail)| Missing {
        tour_id,
        sent_at_ms: sent.unsigned_abs(),
        acked_at_ms: acked.unsigned_abs(),
        detail,
    });
    Ok(missing.collect())
}

/// Takes tours out of what was acknowledged and delivered.
async fn forgive(pool: &PgPool, tours: &[Uuid]) -> anyhow::Result<()> {
    for delete in [
        "DELETE FROM rowlock_audit.acknowledged WHERE tour_id = ANY(SELECT unnest($1))",
        "DELETE FROM rowlock_audit.delivered WHERE message_id = ANY(SELECT id::text FROM unnest($1) AS id)",
    ] {
        sqlx::query(delete).bind(tours).execute(pool).await?;
    }
    Ok(())
}

async fn invariant(pool: &PgPool, file: &AuditFile) -> anyhow::Result<AuditCheck> {
    let sql = read(file)?;
    let counted = format!(
        "SELECT subject::text, detail::text, count(*) OVER () FROM (\n{sql}\n) AS violation (subject, detail) LIMIT {EXAMPLES}"
    );
    let rows: Vec<(String, String, i64)> = select(pool, file, counted).await?;
    let violations = rows.first().map_or(0, |(_, _, all)| u64::try_from(*all).unwrap_or(0));
    let examples = rows
        .into_iter()
        .map(|(subject, detail, _)| format!("{subject}: {detail}"))
        .collect();
    Ok(verdict(&file.name, &file.says, violations, examples))
}

fn read(file: &AuditFile) -> anyhow::Result<String> {
    let sql = std::fs::read_to_string(&file.path).with_context(|| format!("cannot read {}", file.path.display()))?;
    Ok(sql.trim_end().trim_end_matches(';').to_owned())
}

async fn select<R>(pool: &PgPool, file: &AuditFile, sql: String) -> anyhow::Result<Vec<R>>
where
    R: Send + Unpin + for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>,
{
    let mut transaction = pool.begin().await?;
    sqlx::query("SET LOCAL search_path = rowlock_audit, public")
        .execute(&mut *transaction)
        .await?;
    sqlx::query_as(AssertSqlSafe(sql))
        .fetch_all(&mut *transaction)
        .await
        .with_context(|| format!("the invariant {} cannot be checked", file.path.display()))
}
