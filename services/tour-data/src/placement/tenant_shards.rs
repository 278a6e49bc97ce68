//! Tenants live in schemas of their own: a directory says where, and `tour-data move-tenant KEY SHARD` moves one.
//!
//! Each schema has all the tables and a pool of its own, so tenants share neither indexes nor connections. The directory is a
//! table that every replica keeps in memory and reads once a second. A tour asks inside its transaction whether the tenant
//! is still where it was thought to be, under a lock that the move takes too: it finds out in time, and is run again where
//! the tenant is. A tenant is moved in one transaction; its tours wait meanwhile.
//!
//! Gives up: a statement more a tour, one look at the whole of the data (there is no query over all schemas), and for a
//! second after a move pages of tours that look in the wrong place. It needs READ COMMITTED. The hot row stays what it is: a
//! tenant that is too busy for one row is too busy for its row in a schema of its own. Not to be used against that; it is
//! for tenants that get in each other's way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, RwLock};
use tokio::time::Instant;

use super::{Home, Placement, PlacementError, Shard, Shards};
use crate::plan::{Bind, Expect, Incompatible, Needs, Part, Shape, Spec, Step, Steps, When};
use crate::store::{self, StoreError};
use crate::tour::{TenantId, TenantKey};

/// Age at which the directory is read again.
const TTL: Duration = Duration::from_secs(1);

pub(super) static SPEC: Spec = Spec {
    name: "tenant-shards",
    summary: "tenants live in schemas of one database, by a directory; moving one is a command",
    baseline: false,
    promise: None,
    needs: Needs {
        read_committed: true,
        session: Some("the search_path that finds a shard's schema is the session's"),
        ..Needs::NONE
    },
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "SELECT enter_shard",
    sql: "SELECT enter_shard($1, $2)",
    when: When::BeforeInserts,
    expect: Expect::Exactly(1),
    // Wherever it runs, what was done in the wrong place is rolled back.
    part: Part::Anywhere,
}];

pub(super) fn make(shards: Shards) -> Result<Arc<dyn Placement>, Incompatible> {
    if shards.others.is_empty() {
        return Err(Incompatible(
            "placement \"tenant-shards\" needs shards: name the schemas in TOUR_DATA_SHARDS".to_owned(),
        ));
    }
    let all = [vec![shards.main], shards.others].concat();
    Ok(Arc::new(TenantShards {
        shards: all,
        directory: RwLock::default(),
        read_at: Mutex::default(),
    }))
}

struct TenantShards {
    /// The main one first.
    shards: Vec<Arc<Shard>>,
    directory: RwLock<Directory>,
    /// When the directory was last read. Held while reading, so that a burst reads it once.
    read_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Directory {
    /// Names of shards may be known to other replicas only.
    tenants: HashMap<TenantKey, (TenantId, String)>,
    due: Option<Instant>,
}

#[async_trait]
impl Placement for TenantShards {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    async fn home(&self, key: &TenantKey) -> Result<Home, PlacementError> {
        let (known, due) = {
            let directory = self.directory.read().await;
            let due = directory.due.is_none_or(|due| Instant::now() >= due);
            (directory.tenants.get(key).cloned(), due)
        };
        let known = match known {
            Some(known) if !due => Some(known),
            // Without an answer the old one has to do: a tour finds out if it is wrong.
            Some(known) => match self.refresh(Instant::now() - TTL).await {
                Ok(()) => self.lookup(key).await,
                Err(_) => Some(known),
            },
            None => {
                self.refresh(Instant::now() - TTL).await?;
                self.lookup(key).await
            }
        };
        let (tenant, name) = known.ok_or_else(|| PlacementError::Unknown(key.clone()))?;
        let Some(shard) = self.shards.iter().find(|shard| shard.name == name) else {
            return Err(PlacementError::NotConfigured {
                tenant: key.clone(),
                shard: name,
            });
        };
        Ok(Home {
            shard: Arc::clone(shard),
            tenant,
        })
    }

    async fn moved(&self, _key: &TenantKey) {
        if let Err(error) = self.refresh(Instant::now()).await {
            tracing::warn!(%error, "the directory of tenants is not read again");
        }
    }

    fn shards(&self) -> Vec<Arc<Shard>> {
        self.shards.clone()
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    fn steps(&self, home: &Home, key: &TenantKey) -> Steps {
        let here = vec![Bind::Text(key.as_str().to_owned()), Bind::Text(home.shard.name.clone())];
        Steps(vec![Step { shape: 0, binds: here }])
    }
}

impl TenantShards {
    async fn lookup(&self, key: &TenantKey) -> Option<(TenantId, String)> {
        self.directory.read().await.tenants.get(key).cloned()
    }

    /// Reads the directory, unless that was done after `since`.
    async fn refresh(&self, since: Instant) -> Result<(), StoreError> {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|at| at > since) {
            return Ok(());
        }
        let now = Instant::now();
        let tenants = store::shard_directory(&self.shards[0]).await?;
        *self.directory.write().await = Directory {
            tenants,
            due: Some(now + TTL),
        };
        *read_at = Some(now);
        Ok(())
    }
}
