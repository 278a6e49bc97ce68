//! Tables `session` and `refresh_token`. Each function is one statement: a client that goes away in the middle cannot
//! leave half of a change, and there is no transaction that a dropped handler could leave open.

use sqlx::PgConnection;
use uuid::Uuid;

/// A login that is still going on.
#[derive(sqlx::FromRow)]
pub(crate) struct Session {
    pub(crate) id: Uuid,
    pub(crate) account_id: Uuid,
    pub(crate) client_id: String,
    pub(crate) scopes: Vec<String>,
}

/// Begins a session with its first refresh token, which is good for `lifetime_s` seconds.
pub(crate) async fn open(
    connection: &mut PgConnection,
    session: &Session,
    hash: &[u8],
    lifetime_s: f64,
) -> sqlx::Result<()> {
    sqlx::query(
        "WITH opened AS (
             INSERT INTO session (id, account_id, client_id, scopes, expires_at)
             VALUES ($1, $2, $3, $4, now() + make_interval(secs => $6))
             RETURNING id, expires_at
         )
         INSERT INTO refresh_token (hash, session_id, expires_at) SELECT $5, id, expires_at FROM opened",
    )
    .bind(session.id)
    .bind(session.account_id)
    .bind(&session.client_id)
    .bind(&session.scopes)
    .bind(hash)
    .bind(lifetime_s)
    .execute(connection)
    .await
    .map(drop)
}

/// The session of a refresh token that may be used: known, unused, neither expired nor of an ended session.
pub(crate) async fn of_unused(connection: &mut PgConnection, hash: &[u8]) -> sqlx::Result<Option<Session>> {
    sqlx::query_as(
        "SELECT session.id, account_id, client_id, scopes
         FROM refresh_token JOIN session ON session.id = session_id
         WHERE hash = $1 AND used_at IS NULL AND refresh_token.expires_at > now() AND ended_at IS NULL",
    )
    .bind(hash)
    .fetch_optional(connection)
    .await
}

/// Replaces an unused refresh token by another. False if it is not usable any more: of two requests that present the
/// same one, the row's lock lets only one see it unused.
pub(crate) async fn rotate(
    connection: &mut PgConnection,
    hash: &[u8],
    next: &[u8],
    lifetime_s: f64,
) -> sqlx::Result<bool> {
    sqlx::query(
        "WITH used AS (
             UPDATE refresh_token SET used_at = now()
             WHERE hash = $1 AND used_at IS NULL AND expires_at > now()
             RETURNING session_id
         ), prolonged AS (
             UPDATE session SET expires_at = now() + make_interval(secs => $3)
             WHERE id = (SELECT session_id FROM used) AND ended_at IS NULL
             RETURNING id, expires_at
         )
         INSERT INTO refresh_token (hash, session_id, expires_at) SELECT $2, id, expires_at FROM prolonged",
    )
    .bind(hash)
    .bind(next)
    .bind(lifetime_s)
    .execute(connection)
    .await
    .map(|done| done.rows_affected() == 1)
}

/// Ends the session whose token was used before and has come back. True if there was such a session.
pub(crate) async fn end_if_reused(
    connection: &mut PgConnection,
    hash: &[u8],
    client_id: &str,
) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar(
        "UPDATE session SET ended_at = now()
         WHERE id = (SELECT session_id FROM refresh_token WHERE hash = $1 AND used_at IS NOT NULL)
           AND client_id = $2 AND ended_at IS NULL
         RETURNING id",
    )
    .bind(hash)
    .bind(client_id)
    .fetch_optional(connection)
    .await
}

/// The client a refresh token was issued to, whatever has become of it since.
pub(crate) async fn client_of(connection: &mut PgConnection, hash: &[u8]) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("SELECT client_id FROM refresh_token JOIN session ON session.id = session_id WHERE hash = $1")
        .bind(hash)
        .fetch_optional(connection)
        .await
}

/// Ends the session a refresh token belongs to.
pub(crate) async fn end(connection: &mut PgConnection, hash: &[u8]) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE session SET ended_at = now()
         WHERE id = (SELECT session_id FROM refresh_token WHERE hash = $1) AND ended_at IS NULL",
    )
    .bind(hash)
    .execute(connection)
    .await
    .map(drop)
}

/// Forgets sessions that nobody can continue any more, with their tokens.
pub(crate) async fn forget_expired(connection: &mut PgConnection) -> sqlx::Result<u64> {
    sqlx::query("DELETE FROM session WHERE expires_at < now()")
        .execute(connection)
        .await
        .map(|done| done.rows_affected())
}
