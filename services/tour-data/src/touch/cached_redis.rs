//! Remember in Redis what the row holds, for all replicas together, and write only what differs.
//!
//! A tour asks Redis for the configuration it carries; if that is what is there, it sends nothing to the tenant row. After
//! a change the key is taken away before the 201, so the next tour on any replica reads the row. A version beside the key
//! keeps a replica that read the row before the change from bringing the old values back. Without Redis each tour reads
//! the row.
//!
//! A key that cannot be taken away is outlived: the 201 waits until nobody can hold the old values any more.
//!
//! Gives up: `modified_at` as a sign of life, and a round trip to Redis for each tour: the one key of a busy tenant is a hot
//! resource of its own, which happens to be fast. While Redis is away a change takes over a second longer. A replica that
//! ends, or loses PostgreSQL's answer, between COMMIT and 201 leaves the old values in Redis for a second. Not to be used
//! where a row lock is cheaper than a second server.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chassis::cache::{BestEffort, Script};
use deadpool_redis::redis;
use deadpool_redis::redis::aio::MultiplexedConnection;

use super::{Touch, TouchError, changed_binds, step};
use crate::placement::Home;
use crate::plan::{
    Cause, Committed, Config, Ctx, Expect, Kept, Loss, Lost, Needs, Order, Part, Promise, Shape, Spec, Steps, When,
};
use crate::store;
use crate::tour::NewTour;

/// Longest wait for Redis: several times what it takes on a busy machine.
const BOUND: Duration = Duration::from_millis(100);
/// How long a key lives: bounds what a replica can leave behind that did not take it away.
const TTL: Duration = Duration::from_secs(1);
/// From a COMMIT on, the longest that what it replaced can be in Redis: another replica has read the row just before, and
/// tells Redis as late as it may.
const OUTLIVED: Duration = TTL.saturating_add(BOUND.saturating_mul(2));

/// Keeps what was read, unless the version has changed since. `ARGV`: version, values, time to live.
static LEARN: Script = Script::new(
    "local version = redis.call('GET', KEYS[1] .. ':version') or ''
     if version == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
     return 1",
);
/// The version outlives every read that may be under way.
static FORGET: Script = Script::new(
    "redis.call('INCR', KEYS[1] .. ':version')
     redis.call('EXPIRE', KEYS[1] .. ':version', 120)
     return redis.call('DEL', KEYS[1])",
);

pub(super) static SPEC: Spec = Spec {
    name: "cached-redis",
    summary: "remembered in one Redis key a tenant, taken away before the 201 of a change, written only where it differs",
    baseline: false,
    promise: Some(Promise::Tenant {
        config: Config::OnChange,
        modified_at: Order::LastWriterWins,
        kept: Kept::Row,
        loses: &[Loss {
            text: "a change back to earlier values within a second after a replica crashed, or lost PostgreSQL's answer, between \
             COMMIT and 201",
            of: Lost::Acknowledged,
            causes: &[Cause::Replica, Cause::Database],
        }],
    }),
    needs: Needs::NONE,
};

const SHAPES: [Shape; 1] = [Shape {
    summary: "UPDATE tenant_config",
    sql: "UPDATE tenant_config SET modified_at = $1, tenant = $2, tenant_info = $3 WHERE id = $4",
    when: When::AfterInserts,
    expect: Expect::Exactly(1),
    part: Part::Ordered,
}];

pub(super) fn make() -> Arc<dyn Touch> {
    Arc::new(CachedRedis::default())
}

#[derive(Default)]
struct CachedRedis(OnceLock<BestEffort>);

#[async_trait]
impl Touch for CachedRedis {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn shapes(&self) -> &'static [Shape] {
        &SHAPES
    }

    async fn decide(&self, cx: &Ctx, home: &Home, tour: &NewTour) -> Result<Steps, TouchError> {
        if self.unchanged(cx, home, tour).await {
            return Ok(Steps::default());
        }
        Ok(Steps(vec![step(0, changed_binds(home.tenant, tour))]))
    }

    async fn settle(&self, cx: &Ctx, home: &Home, tour: &NewTour, done: &Committed) -> Result<(), TouchError> {
        if !done.touched {
            return Ok(());
        }
        let key = key(home, tour);
        let forget = async |connection: &mut MultiplexedConnection| FORGET.run::<()>(connection, &key, NOTHING).await;
        if self.redis(cx).ask(forget).await.is_err() {
            tracing::warn!(
                key,
                "Redis may hold what the tenant row held before: waiting until it cannot"
            );
            tokio::time::sleep(OUTLIVED).await;
        }
        Ok(())
    }
}

/// The arguments of a script without any.
const NOTHING: &[&str] = &[];

impl CachedRedis {
    fn redis(&self, cx: &Ctx) -> &BestEffort {
        self.0.get_or_init(|| BestEffort::new(cx.redis.clone(), BOUND))
    }

    /// Whether the row holds what the tour carries, as far as is known.
    async fn unchanged(&self, cx: &Ctx, home: &Home, tour: &NewTour) -> bool {
        let (redis, key) = (self.redis(cx), key(home, tour));
        let ours = values(&tour.tenant.tenant, tour.tenant.info.as_deref());
        let asked = Instant::now();
        let versioned = [key.clone(), format!("{key}:version")];
        let known = redis
            .ask(async |connection| {
                let mut ask = redis::cmd("MGET");
                ask.arg(&versioned)
                    .query_async::<(Option<String>, Option<String>)>(connection)
                    .await
            })
            .await;
        let version = match known {
            Ok((Some(known), _)) => return known == ours,
            Ok((None, version)) => Some(version.unwrap_or_default()),
            Err(_away) => None,
        };
        // What cannot be read is written: the transaction will find out why.
        let Ok(row) = store::tenant_config(&home.shard, home.tenant).await else {
            return false;
        };
        let row = values(&row.tenant, row.tenant_info.as_deref());
        // What was read too long ago may be outlived already.
        if let Some(version) = version.filter(|_| asked.elapsed() < BOUND) {
            let arguments = [version, row.clone(), TTL.as_millis().to_string()];
            // Not learnt is asked again.
            let _ = redis
                .ask(async |connection| LEARN.run::<()>(connection, &key, &arguments).await)
                .await;
        }
        row == ours
    }
}

/// One a database and tenant: Redis may be shared.
fn key(home: &Home, tour: &NewTour) -> String {
    let options = home.shard.db.connect_options();
    let database = options.get_database().unwrap_or_default();
    format!("tenant-config:{database}:{}", tour.tenant.key)
}

fn values(tenant: &str, info: Option<&str>) -> String {
    serde_json::to_string(&(tenant, info)).expect("texts are JSON")
}
