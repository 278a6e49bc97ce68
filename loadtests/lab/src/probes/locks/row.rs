//! Names the row that a session holds, by the values of its unique columns.

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgPool};

/// Tables of more pages are not searched: finding a locked row reads the whole table.
const MOST_PAGES: i32 = 256;

/// Columns that name a row: those that are unique by themselves, the primary key first.
const NAMING_COLUMNS: &str = "\
SELECT a.attname::text
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = $1::regclass AND i.indisunique AND i.indnkeyatts = 1 AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC, a.attnum
LIMIT 3";

/// The table of this name that the session has locked rows of. Several schemas may have one of the name, and a statement says
/// only what its session's search path makes of it.
const TABLE: &str = "\
SELECT c.oid::regclass::text, c.relpages, n.nspname::text
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = $2 AND l.granted AND c.relkind = 'r' AND c.relname = $1
ORDER BY c.oid
LIMIT 1";

/// `id=1, tenant_key=BEHNGT` for the row of `relation` that `holder` has locked; with the schema where that is not `public`.
///
/// `address` is the row's place where a waiter on its `tuple` lock gave it away; otherwise the locked rows are looked
/// up with `pgrowlocks`. `None` when the row cannot be found: the relation is large, the lock has just been handed
/// over, or several rows are locked by the same session.
pub(super) async fn name(pool: &PgPool, relation: &str, holder: i32, address: Option<&str>) -> Option<String> {
    let unqualified = relation.rsplit('.').next().unwrap_or(relation).trim_matches('"');
    let (relation, pages, schema): (String, i32, String) = sqlx::query_as(TABLE)
        .bind(unqualified)
        .bind(holder)
        .fetch_optional(pool)
        .await
        .ok()??;
    let address = match address {
        Some(address) => address.to_owned(),
        None if pages <= MOST_PAGES => locked_row(pool, &relation, holder).await?,
        None => return None,
    };
    let columns: Vec<String> = sqlx::query_scalar(NAMING_COLUMNS)
        .bind(&relation)
        .fetch_all(pool)
        .await
        .ok()
        .filter(|c| !c.is_empty())?;
    // `relation` is the server's own quoting of an existing relation, so it can stand in the statement.
    let row: Value = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT to_jsonb(t) FROM {relation} AS t WHERE t.ctid = $1::text::tid"
    )))
    .bind(address)
    .fetch_optional(pool)
    .await
    .ok()??;
    let values = columns.iter().map(|column| match &row[column] {
        Value::String(text) => format!("{column}={text}"),
        other => format!("{column}={other}"),
    });
    let schema = (schema != "public").then(|| format!("schema={schema}"));
    Some(schema.into_iter().chain(values).collect::<Vec<_>>().join(", "))
}

async fn locked_row(pool: &PgPool, relation: &str, holder: i32) -> Option<String> {
    sqlx::query("CREATE EXTENSION IF NOT EXISTS pgrowlocks")
        .execute(pool)
        .await
        .ok()?;
    let rows: Vec<String> =
        sqlx::query_scalar("SELECT locked_row::text FROM pgrowlocks($1) WHERE $2 = ANY(pids) LIMIT 2")
            .bind(relation)
            .bind(holder)
            .fetch_all(pool)
            .await
            .ok()?;
    match rows.as_slice() {
        [row] => Some(row.clone()),
        _ => None,
    }
}
