//! Table `client`.

use sqlx::{PgConnection, PgPool};

/// What issuing a token needs to know of a client.
#[derive(sqlx::FromRow)]
pub(crate) struct Client {
    pub(crate) client_id: String,
    pub(crate) secret_hash: Vec<u8>,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// Grant types it may use.
    pub(crate) grants: Vec<String>,
    /// Whether it may ask about tokens.
    pub(crate) introspect: bool,
}

/// By primary key.
pub(crate) async fn find(connection: &mut PgConnection, client_id: &str) -> sqlx::Result<Option<Client>> {
    sqlx::query_as("SELECT client_id, secret_hash, tenant, scopes, grants, introspect FROM client WHERE client_id = $1")
        .bind(client_id)
        .fetch_optional(connection)
        .await
}

/// Inserts or overwrites one client; others stay as they are. One statement, hence atomic without a transaction.
pub(crate) async fn upsert(pool: &PgPool, client: &Client) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO client (client_id, secret_hash, tenant, scopes, grants, introspect) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (client_id) DO UPDATE
         SET secret_hash = excluded.secret_hash, tenant = excluded.tenant, scopes = excluded.scopes,
             grants = excluded.grants, introspect = excluded.introspect, updated_at = now()",
    )
    .bind(&client.client_id)
    .bind(&client.secret_hash)
    .bind(&client.tenant)
    .bind(&client.scopes)
    .bind(&client.grants)
    .bind(client.introspect)
    .execute(pool)
    .await
    .map(drop)
}
