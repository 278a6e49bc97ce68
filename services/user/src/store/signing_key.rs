//! Table `signing_key`. All moments are those of the server's clock; callers get and give differences to it.

use sqlx::{PgConnection, PgExecutor};

/// Advisory lock under which keys are made ("rowlockk" as a number).
const CREATION_LOCK: i64 = 0x726f_776c_6f63_6b6b;

/// A key that is published; `sealed` is encrypted.
#[derive(sqlx::FromRow)]
pub(crate) struct StoredKey {
    pub(crate) kid: String,
    pub(crate) sealed: Vec<u8>,
    /// Seconds until it signs; negative once it does, or did.
    pub(crate) signs_in_s: f64,
    /// Seconds until it is withdrawn; `None` for the latest.
    pub(crate) retires_in_s: Option<f64>,
}

/// All published keys, in the order in which they sign.
pub(crate) async fn published(db: impl PgExecutor<'_>) -> sqlx::Result<Vec<StoredKey>> {
    sqlx::query_as(
        "SELECT kid, sealed,
                extract(epoch FROM signs_from - clock_timestamp())::float8 AS signs_in_s,
                extract(epoch FROM retires_at - clock_timestamp())::float8 AS retires_in_s
         FROM signing_key
         WHERE retires_at IS NULL OR retires_at > clock_timestamp()
         ORDER BY signs_from, created_at",
    )
    .fetch_all(db)
    .await
}

/// Waits until no other replica is making a key; held until the transaction ends.
pub(crate) async fn lock_creation(transaction: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(CREATION_LOCK)
        .execute(transaction)
        .await
        .map(drop)
}

/// Stores a new key that signs in `lead_s` seconds, though never before a key that is waiting already. The key it
/// follows is withdrawn `overlap_s` seconds after that.
pub(crate) async fn add(
    transaction: &mut PgConnection,
    kid: &str,
    sealed: &[u8],
    lead_s: f64,
    overlap_s: f64,
) -> sqlx::Result<()> {
    sqlx::query(
        "WITH turn AS (
             SELECT greatest(clock_timestamp() + make_interval(secs => $3), max(signs_from)) AS at FROM signing_key
         ), followed AS (
             UPDATE signing_key SET retires_at = (SELECT at FROM turn) + make_interval(secs => $4)
             WHERE retires_at IS NULL
         )
         INSERT INTO signing_key (kid, sealed, created_at, signs_from)
         SELECT $1, $2, clock_timestamp(), at FROM turn",
    )
    .bind(kid)
    .bind(sealed)
    .bind(lead_s)
    .bind(overlap_s)
    .execute(transaction)
    .await
    .map(drop)
}

/// Forgets keys that were withdrawn.
pub(crate) async fn forget_retired(connection: &mut PgConnection) -> sqlx::Result<u64> {
    sqlx::query("DELETE FROM signing_key WHERE retires_at < now()")
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
}
