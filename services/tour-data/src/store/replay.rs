//! What an idempotency key has made before.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{StoreError, read};
use crate::placement::Shard;
use crate::tour::TenantId;

/// The tour that a key made.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Stored {
    /// Its id.
    pub id: Uuid,
    /// As in the request that made it.
    pub tour_number: String,
    /// The service's clock then.
    pub created_at: DateTime<Utc>,
    /// SHA-256 of the request that made it.
    pub request_digest: Vec<u8>,
    /// Rows of the five tour tables.
    pub rows: i64,
}

/// The tour stored under `key`, if any, with its rows counted.
///
/// # Errors
/// [`StoreError`]
pub async fn stored_under_key(shard: &Shard, tenant: TenantId, key: &str) -> Result<Option<Stored>, StoreError> {
    const SQL: &str = "SELECT t.id, t.tour_number, t.created_at, t.request_digest, \
        1 + count(DISTINCT s.id) + count(DISTINCT sa.id) + count(DISTINCT o.id) + count(DISTINCT oa.id) \
          + count(DISTINCT p.id) AS rows \
        FROM tour t \
        LEFT JOIN stop s ON s.tour_id = t.id \
        LEFT JOIN address sa ON sa.id = s.address_id \
        LEFT JOIN tour_order o ON o.stop_id = s.id \
        LEFT JOIN address oa ON oa.id = o.address_id \
        LEFT JOIN order_position p ON p.order_id = o.id \
        WHERE t.tenant_config_id = $1 AND t.idempotency_key = $2 \
        GROUP BY t.id";
    read(&shard.db, "SELECT tour by idempotency key", async |conn| {
        sqlx::query_as(SQL)
            .bind(tenant.0)
            .bind(key)
            .fetch_optional(&mut *conn)
            .await
    })
    .await
}
