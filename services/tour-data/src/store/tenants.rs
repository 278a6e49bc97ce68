//! The tenants and their configuration.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{StoreError, read};
use crate::placement::Shard;
use crate::tour::{Tenant, TenantId, TenantKey};

/// A row of `tenant_config`; answer of `GET /api/v1/tenants/{key}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
pub struct TenantConfig {
    /// Display name.
    pub tenant: String,
    /// Key.
    pub tenant_key: String,
    /// Free text.
    pub tenant_info: Option<String>,
    /// As the last tour wrote it.
    pub modified_at: DateTime<Utc>,
}

/// The configuration of a tenant, as it stands in its row.
///
/// # Errors
/// [`StoreError`], also when the row has gone since the directory was read.
pub async fn tenant_config(shard: &Shard, tenant: TenantId) -> Result<TenantConfig, StoreError> {
    const SQL: &str = "SELECT tenant, tenant_key, tenant_info, modified_at FROM tenant_config WHERE id = $1";
    tenant_config_by(shard, "SELECT tenant_config", SQL, tenant).await
}

/// The configuration of a tenant, as `sql` computes it for the tenant's id.
///
/// # Errors
/// [`StoreError`], also when the row has gone since the directory was read.
pub(crate) async fn tenant_config_by(
    shard: &Shard,
    summary: &'static str,
    sql: &'static str,
    tenant: TenantId,
) -> Result<TenantConfig, StoreError> {
    read(&shard.db, summary, async |conn| {
        sqlx::query_as(sql).bind(tenant.0).fetch_one(&mut *conn).await
    })
    .await
}

/// Writes the tenant's row in a transaction of its own, unless it holds something newer. Doing it again does no harm.
///
/// # Errors
/// [`StoreError`]; [`StoreError::NotFound`] when the row is not there.
pub(crate) async fn write_newest(
    shard: &Shard,
    tenant: TenantId,
    config: &Tenant,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const UPDATE: &str = "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 \
        WHERE id = $4 AND modified_at <= $1";
    // Asked by itself: a part of the UPDATE would look at what was there before it waited, and find the row of a tenant that
    // has moved away meanwhile.
    const FIND: &str = "SELECT id FROM tenant_config WHERE id = $1";
    // It may be begun again on another session like a read, since doing it twice is doing it once.
    read(&shard.db, "UPDATE tenant_config", async |conn| {
        let update = sqlx::query(UPDATE)
            .bind(at)
            .bind(&config.tenant)
            .bind(&config.info)
            .bind(tenant.0);
        if update.execute(&mut *conn).await?.rows_affected() == 0 {
            sqlx::query(FIND).bind(tenant.0).fetch_one(&mut *conn).await?;
        }
        Ok(())
    })
    .await
}

/// All tenants. A row whose key could not be one is left out: no request can name it.
///
/// # Errors
/// [`StoreError`]
pub async fn tenant_directory(shard: &Shard) -> Result<HashMap<TenantKey, TenantId>, StoreError> {
    const SQL: &str = "SELECT tenant_key, id FROM tenant_config";
    let rows: Vec<(String, i64)> = read(&shard.db, "SELECT tenant_config keys", async |conn| {
        sqlx::query_as(SQL).fetch_all(&mut *conn).await
    })
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|(key, id)| Some((TenantKey::parse(&key)?, TenantId(id))))
        .collect())
}

/// Where every tenant lives: its id, and the name of its schema.
///
/// # Errors
/// [`StoreError`]
pub(crate) async fn shard_directory(main: &Shard) -> Result<HashMap<TenantKey, (TenantId, String)>, StoreError> {
    const SQL: &str = "SELECT tenant_key, tenant_config_id, shard FROM public.tenant_shard UNION ALL \
        SELECT c.tenant_key, c.id, 'public' FROM public.tenant_config c \
        WHERE NOT EXISTS (SELECT FROM public.tenant_shard s WHERE s.tenant_key = c.tenant_key)";
    let rows: Vec<(String, i64, String)> = read(&main.db, "SELECT tenant_shard", async |conn| {
        sqlx::query_as(SQL).fetch_all(&mut *conn).await
    })
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|(key, id, shard)| Some((TenantKey::parse(&key)?, (TenantId(id), shard))))
        .collect())
}

/// Runs `sql` with the size of a batch until it takes less than a full one; it answers with how many it took.
///
/// # Errors
/// [`StoreError`]
pub(crate) async fn repeat_full_batches(
    shard: &Shard,
    summary: &'static str,
    sql: &'static str,
    batch: i64,
) -> Result<(), StoreError> {
    loop {
        // Begun again on another session like a read: what the first attempt took, the second one does not find.
        let took: i64 = read(&shard.db, summary, async |conn| {
            sqlx::query_scalar(sql).bind(batch).fetch_one(&mut *conn).await
        })
        .await?;
        if took < batch {
            return Ok(());
        }
    }
}
