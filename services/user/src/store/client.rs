//! Table `client`.

use sqlx::{PgConnection, PgPool};

/// What issuing a token needs to know of a client.
#[derive(sqlx::FromRow)]
pub(crate) struct Client {
    pub(crate) secret_hash: Vec<u8>,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
}

/// A client as it is written.
pub(crate) struct NewClient {
    pub(crate) client_id: String,
    pub(crate) secret_hash: Vec<u8>,
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
}

/// By primary key.
pub(crate) async fn find(connection: &mut PgConnection, client_id: &str) -> sqlx::Result<Option<Client>> {
    sqlx::query_as("SELECT secret_hash, tenant, scopes FROM client WHERE client_id = $1")
        .bind(client_id)
        .fetch_optional(connection)
        .await
}

/// Inserts or overwrites one client; others stay as they are. One statement, hence atomic without a transaction.
pub(crate) async fn upsert(pool: &PgPool, client: &NewClient) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO client (client_id, secret_hash, tenant, scopes) VALUES ($1, $2, $3, $4)
         ON CONFLICT (client_id) DO UPDATE
         SET secret_hash = excluded.secret_hash, tenant = excluded.tenant, scopes = excluded.scopes,
             updated_at = now()",
    )
    .bind(&client.client_id)
    .bind(&client.secret_hash)
    .bind(&client.tenant)
    .bind(&client.scopes)
    .execute(pool)
    .await
    .map(drop)
}
