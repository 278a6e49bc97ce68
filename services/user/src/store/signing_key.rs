//! Table `signing_key`.

use sqlx::{PgConnection, PgExecutor};

/// Advisory lock under which the first key is made ("rowlockk" as a number).
const CREATION_LOCK: i64 = 0x726f_776c_6f63_6b6b;

/// A stored key; `sealed` is encrypted.
#[derive(sqlx::FromRow)]
pub(crate) struct StoredKey {
    pub(crate) kid: String,
    pub(crate) sealed: Vec<u8>,
}

/// The key that signs: the youngest.
pub(crate) async fn current(db: impl PgExecutor<'_>) -> sqlx::Result<Option<StoredKey>> {
    sqlx::query_as("SELECT kid, sealed FROM signing_key ORDER BY created_at DESC, kid LIMIT 1")
        .fetch_optional(db)
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

/// Stores a new key.
pub(crate) async fn insert(transaction: &mut PgConnection, key: &StoredKey) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO signing_key (kid, sealed) VALUES ($1, $2)")
        .bind(&key.kid)
        .bind(&key.sealed)
        .execute(transaction)
        .await
        .map(drop)
}
