//! Axis `placement`: which database a tenant lives in.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::db::{DbConfig, Sessions};

use crate::axis::{Axis, Entry};
use crate::plan::{Incompatible, Shape, Spec, Steps};
use crate::store::StoreError;
use crate::tour::{TenantId, TenantKey};

include!(concat!(env!("OUT_DIR"), "/placement.rs"));

/// A directory of tenants.
#[async_trait]
pub trait Placement: Send + Sync {
    /// Its name.
    fn spec(&self) -> &'static Spec;

    /// Where the tenant's rows are. Answered from memory but for keys that are not known yet.
    async fn home(&self, key: &TenantKey) -> Result<Home, PlacementError>;

    /// Told that the tenant was not found where it was thought to live.
    async fn moved(&self, _key: &TenantKey) {}

    /// Every place there is.
    fn shards(&self) -> Vec<Arc<Shard>>;

    /// The statements it adds to the transaction, before those of touch and announcement.
    fn shapes(&self) -> &'static [Shape] {
        &[]
    }

    /// Which of them a tour runs, with which values.
    fn steps(&self, _home: &Home, _key: &TenantKey) -> Steps {
        Steps::default()
    }
}

/// A place for tenants: a database, or a schema of one.
#[derive(Debug)]
pub struct Shard {
    /// As configured; `public` for the one that is always there.
    pub name: String,
    /// Sessions on it.
    pub db: Sessions,
    /// How else it may be reached than through the pool.
    pub access: DbConfig,
}

/// What a placement has to choose from.
#[derive(Debug, Clone)]
pub struct Shards {
    /// The one that is always there.
    pub main: Arc<Shard>,
    /// The configured ones.
    pub others: Vec<Arc<Shard>>,
}

/// The place of a tenant.
#[derive(Debug, Clone)]
pub struct Home {
    /// Database that holds its rows.
    pub shard: Arc<Shard>,
    /// Its row of `tenant_config` there.
    pub tenant: TenantId,
}

/// Why a tenant's place is not known.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// There is no such tenant.
    #[error("no tenant has the key {0}")]
    Unknown(TenantKey),
    /// The tenant lives in a shard that this replica does not know.
    #[error("the tenant {tenant} lives in the shard {shard:?}, which is not among the configured ones")]
    NotConfigured {
        /// Who.
        tenant: TenantKey,
        /// Where.
        shard: String,
    },
    /// The directory could not be read.
    #[error("the directory of tenants cannot be read: {0}")]
    Unavailable(#[from] StoreError),
}

impl Axis for dyn Placement {
    const NAME: &'static str = "placement";
    type Make = fn(Shards) -> Result<Arc<dyn Placement>, Incompatible>;

    fn registry() -> &'static [Entry<Self>] {
        REGISTRY
    }
}
