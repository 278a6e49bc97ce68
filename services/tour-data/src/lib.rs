//! tour-data: creates tours, 87 rows each, writes the tenant's row and tells about it.
//!
//! How it does so is composed from one alternative of each of four axes ([`inserts`], [`touch`], [`announce`],
//! [`placement`]), chosen by configuration; [`plan`] runs the composition. Everything else is the same for all of
//! them: [`tour`] parses requests, [`store`] reads, the HTTP handlers answer.

pub mod announce;
pub mod axis;
pub mod inserts;
pub mod placement;
pub mod plan;
pub mod store;
pub mod touch;
pub mod tour;

mod cache;
mod config;
mod consumer;
mod describe;
mod http;
mod metrics;
mod shards;

use std::sync::Arc;

use chassis::auth::Verifier;
use chassis::broker::{Broker, Exchange, Queue, Topology};
use chassis::cache as redis;
use chassis::readiness::Kind;
use chassis::service::{Action, App, Background, Chassis, Service, StartError};
use chrono::Utc;
use tokio_util::sync::CancellationToken;

pub use config::{Config, Switch};
pub use shards::ShardNames;

use crate::cache::TourCache;
use crate::placement::Shards;
use crate::plan::{Alternatives, Ctx, Incompatible, Plan};

/// The schema this binary needs.
static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/tour-data");

/// The service.
pub struct TourData;

impl Service for TourData {
    const NAME: &'static str = "tour-data";
    type Config = Config;

    fn describe() -> serde_json::Value {
        describe::describe()
    }

    async fn build(config: Config, cx: Chassis) -> Result<App, StartError> {
        let chosen = Alternatives {
            inserts: config.inserts.make()(),
            touch: config.touch.make()(),
            announce: config.announce.make()(),
        };
        serve(&config, &cx, chosen)
    }

    async fn migrate(config: Config) -> Result<(), StartError> {
        shards::migrate(&config, &MIGRATIONS).await
    }

    const ACTIONS: &'static [Action] = &[Action {
        name: "move-tenant",
        words: &["KEY", "SHARD"],
    }];

    /// `move-tenant KEY SHARD`, the only one.
    async fn act(_: &str, words: &[String], config: Config) -> Result<(), StartError> {
        shards::move_tenant(&config, words).await
    }
}

/// The service with these alternatives, whatever the configuration says about their axes.
///
/// # Errors
/// [`StartError`], also when they do not go together.
pub fn serve(config: &Config, cx: &Chassis, chosen: Alternatives) -> Result<App, StartError> {
    let shards = Shards::open(config, cx)?;
    let redis = redis::pool(&config.redis)?;
    let (broker, connection) = Broker::connect(&config.broker, topology(config, &chosen), cx)?;
    let dependencies = vec![
        shards.main.db.dependency(Kind::Required),
        // Without Redis every read goes to PostgreSQL: slower, and right.
        redis::dependency(&redis, Kind::Degradable),
        // Without the broker tours are stored and answered with 503 until they can be announced, while every read
        // works. Unready, all replicas would leave the balancer at once and the reads with them.
        broker.dependency(Kind::Degradable),
    ];

    let refused = |incompatible: Incompatible| StartError::Config(incompatible.to_string());
    let context = Ctx {
        placement: config.placement.make()(shards).map_err(refused)?,
        clock: Utc::now,
        broker: broker.clone(),
        exchange: config.exchange,
        touches: config.touch_queue,
        redis: redis.clone(),
        quiet: CancellationToken::new(),
    };
    let plan = Plan::compile(chosen, config.isolation, context).map_err(refused)?;
    let plan = Arc::new(plan);

    let mut background = vec![connection, unattended(Arc::clone(&plan), cx)];
    background.extend(plan.background());
    if config.consumer == Switch::On {
        background.push(consumer::consumer(&broker, config.queue, *config.consumer_delay));
    }
    let verifier = Verifier::new(&config.auth)?;
    verifier.prefetch();
    let router = http::router(http::State {
        plan,
        cache: Arc::new(TourCache::new(redis, *config.tour_cache_ttl)),
        verifier,
        clock: Utc::now,
    });
    Ok(App {
        router,
        dependencies,
        background,
    })
}

fn topology(config: &Config, chosen: &Alternatives) -> Topology {
    let mut queues = chosen.touch.queues(config.touch_queue);
    queues.push(Queue {
        name: config.queue,
        single_active_consumer: true,
        bindings: vec![(config.exchange, announce::TOUR_CREATED)],
    });
    Topology {
        exchanges: vec![Exchange { name: config.exchange }],
        queues,
    }
}

/// Keeps the process alive, within its drain timeout, for tours whose clients have gone.
fn unattended(plan: Arc<Plan>, cx: &Chassis) -> Background {
    let drain = cx.drain.clone();
    Background::new("unattended tours", async move {
        drain.cancelled().await;
        plan.drained().await;
        Ok(())
    })
}
