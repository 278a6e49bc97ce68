//! The published way: one database for all tenants.
//!
//! The ids of the tenants are kept in memory, so that the published UPDATE (`WHERE id=$5`) needs no round trip to find
//! its row. A key that is not known reads the directory again, at most once a second: requests for tenants that do not
//! exist must not become a load on the database.
//!
//! Gives up: isolation between tenants, who share pool, log and disk. A tenant that is deleted stays known until the
//! process ends; its tours then fail, since the UPDATE finds no row. Not to be used where one tenant's load must not be
//! felt by another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, RwLock};
use tokio::time::Instant;

use super::{Home, Placement, PlacementError, Shard, Shards};
use crate::plan::{Incompatible, Needs, Spec};
use crate::store;
use crate::tour::{TenantId, TenantKey};

/// Least time between two readings of the directory.
const REFRESH: Duration = Duration::from_secs(1);

pub(super) static SPEC: Spec = Spec {
    name: "single",
    summary: "all tenants in one database",
    baseline: true,
    promise: None,
    needs: Needs::NONE,
};

pub(super) fn make(shards: Shards) -> Result<Arc<dyn Placement>, Incompatible> {
    if let Some(other) = shards.others.first() {
        return Err(Incompatible(format!(
            "placement \"single\" has no use for the shard {:?}: choose tenant-shards, or configure no shards",
            other.name
        )));
    }
    Ok(Arc::new(Single {
        shard: shards.main,
        known: RwLock::default(),
        read_at: Mutex::default(),
    }))
}

struct Single {
    shard: Arc<Shard>,
    known: RwLock<HashMap<TenantKey, TenantId>>,
    /// When the directory was last read. Held while reading, so that a burst of unknown keys reads it once.
    read_at: Mutex<Option<Instant>>,
}

#[async_trait]
impl Placement for Single {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn home(&self, key: &TenantKey) -> Result<Home, PlacementError> {
        let tenant = match self.lookup(key).await {
            Some(tenant) => Some(tenant),
            None => {
                self.refresh().await?;
                self.lookup(key).await
            }
        };
        let tenant = tenant.ok_or_else(|| PlacementError::Unknown(key.clone()))?;
        Ok(Home {
            shard: Arc::clone(&self.shard),
            tenant,
        })
    }

    fn shards(&self) -> Vec<Arc<Shard>> {
        vec![Arc::clone(&self.shard)]
    }
}

impl Single {
    async fn lookup(&self, key: &TenantKey) -> Option<TenantId> {
        self.known.read().await.get(key).copied()
    }

    async fn refresh(&self) -> Result<(), PlacementError> {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|at| at.elapsed() < REFRESH) {
            return Ok(());
        }
        let directory = store::tenant_directory(&self.shard).await?;
        *self.known.write().await = directory;
        *read_at = Some(Instant::now());
        Ok(())
    }
}
