//! Whether an access token still counts: table `revoked_token`, and the sessions that have ended.

use sqlx::PgConnection;
use uuid::Uuid;

/// Revokes one access token; `expires_at` in seconds since 1970, after which nobody needs to know any more.
pub(crate) async fn revoke(connection: &mut PgConnection, jti: &str, expires_at: i64) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO revoked_token (jti, expires_at) VALUES ($1, to_timestamp($2)) ON CONFLICT (jti) DO NOTHING",
    )
    .bind(jti)
    .bind(expires_at as f64)
    .execute(connection)
    .await
    .map(drop)
}

/// Whether the token was revoked, by itself or with the session it came from.
pub(crate) async fn is_revoked(connection: &mut PgConnection, jti: &str, session: Option<Uuid>) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM revoked_token WHERE jti = $1)
             OR ($2 IS NOT NULL AND NOT EXISTS (SELECT FROM session WHERE id = $2 AND ended_at IS NULL))",
    )
    .bind(jti)
    .bind(session)
    .fetch_one(connection)
    .await
}

/// Forgets revocations of tokens that have expired by themselves.
pub(crate) async fn forget_expired(connection: &mut PgConnection) -> sqlx::Result<u64> {
    sqlx::query("DELETE FROM revoked_token WHERE expires_at < now()")
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
}
