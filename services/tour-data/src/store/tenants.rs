//! The tenants and their configuration.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{StoreError, read};
use crate::placement::Shard;
use crate::tour::{TenantId, TenantKey};

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

/// The configuration of a tenant.
///
/// # Errors
/// [`StoreError`], also when the row has gone since the directory was read.
pub async fn tenant_config(shard: &Shard, tenant: TenantId) -> Result<TenantConfig, StoreError> {
    const SQL: &str = "SELECT tenant, tenant_key, tenant_info, modified_at FROM tenant_config WHERE id = $1";
    read(&shard.db, "SELECT tenant_config", async |conn| {
        sqlx::query_as(SQL).bind(tenant.0).fetch_one(&mut *conn).await
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
