//! The Redis pool.
//!
//! deadpool waits for ever by default, and a response that comes after redis-rs's own limit of 500 ms poisons the *next*
//! command on the same connection; here every wait has the one bound of the configuration. No blocking command
//! (`BLPOP`, `WAIT`) goes through this pool: its own time would have to be below that bound.

mod best_effort;
mod script;

use anyhow::Context;
use deadpool_redis::{Manager, Pool, Runtime};
use futures::FutureExt;
use redis::{AsyncConnectionConfig, IntoConnectionInfo};

use crate::{
    config::{Address, HumanDuration},
    pools::{self, PoolState},
    readiness::{Dependency, Kind},
    service::StartError,
};

pub use best_effort::{Away, BestEffort};
pub use script::Script;

/// How to reach Redis, and the shape of the pool.
#[derive(Clone, Debug, clap::Args, serde::Serialize)]
pub struct RedisConfig {
    /// Redis URL, redis://user:password@host:port/database.
    #[arg(long)]
    pub redis_url: Address,
    /// Most connections the pool opens.
    #[arg(long, default_value_t = 8, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub redis_pool_max: usize,
    /// Bound on each wait: for a free connection, for connecting, and for the answer to a command.
    #[arg(long, default_value = "2s")]
    pub redis_timeout: HumanDuration,
}

/// A pool that connects when first used, so that a service starts while Redis is away.
pub fn pool(config: &RedisConfig) -> Result<Pool, StartError> {
    let bound = *config.redis_timeout;
    let info = config.redis_url.as_str().into_connection_info().map_err(|error| {
        StartError::Config(format!(
            "redis_url is not a Redis URL ({error}); expected redis://host:port"
        ))
    })?;
    // redis-rs leaves Nagle's algorithm on; a pipeline of small commands would wait for delayed acknowledgements.
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let connection = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(bound))
        .set_response_timeout(Some(bound));
    let manager = Manager::new_with_config(info.set_tcp_settings(tcp), connection)
        .map_err(|error| StartError::Config(format!("redis_url cannot be used: {error}")))?;
    let pool = Pool::builder(manager)
        .max_size(config.redis_pool_max)
        .wait_timeout(Some(bound))
        .create_timeout(Some(bound))
        .recycle_timeout(Some(bound))
        .runtime(Runtime::Tokio1)
        .build()
        .context("the Redis pool")
        .map_err(StartError::Unavailable)?;
    let observed = pool.clone();
    pools::observe("redis", "redis", move || {
        let status = observed.status();
        let idle = status.available as u64;
        (!observed.is_closed()).then(|| PoolState {
            used: (status.size as u64).saturating_sub(idle),
            idle,
            max: status.max_size as u64,
        })
    });
    Ok(pool)
}

/// Whether Redis answers `PING`.
pub fn dependency(pool: &Pool, kind: Kind) -> Dependency {
    let pool = pool.clone();
    Dependency::new("redis", kind, move || {
        let pool = pool.clone();
        async move {
            let mut connection = pool.get().await.map_err(|error| error.to_string())?;
            redis::cmd("PING")
                .exec_async(&mut connection)
                .await
                .map_err(|error| error.to_string())
        }
        .boxed()
    })
}
