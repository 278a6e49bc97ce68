//! Axis `placement`: which database a tenant lives in.
//!
//! An alternative is one file in this folder that defines `SPEC` and `make`; the build finds it.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::PgPool;

use crate::axis::{Axis, Entry};
use crate::plan::Spec;
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
}

/// A database.
#[derive(Debug)]
pub struct Shard {
    /// Sessions on it.
    pub db: PgPool,
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
    /// The directory could not be read.
    #[error("the directory of tenants cannot be read: {0}")]
    Unavailable(#[from] StoreError),
}

impl Axis for dyn Placement {
    const NAME: &'static str = "placement";
    type Make = fn(PgPool) -> Arc<dyn Placement>;

    fn registry() -> &'static [Entry<Self>] {
        REGISTRY
    }
}
