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

use std::sync::Arc;

use chassis::auth::Verifier;
use chassis::broker::{Broker, Exchange, Queue, Topology};
use chassis::readiness::Kind;
use chassis::service::{App, Background, Chassis, Service, StartError};
use chassis::{cache as redis, db};
use chrono::Utc;

pub use config::{Config, Switch};

use crate::cache::TourCache;
use crate::plan::{Alternatives, Ctx, Plan};

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
        let db = db::pool(&config.db, &cx)?;
        let redis = redis::pool(&config.redis)?;
        let (broker, connection) = Broker::connect(&config.broker, topology(&config), &cx)?;
        let dependencies = vec![
            db::dependency(&db, Kind::Required),
            // Without Redis every read goes to PostgreSQL: slower, and right.
            redis::dependency(&redis, Kind::Degradable),
            // Without the broker tours are stored and answered with 503 until they can be announced, while every read
            // works. Unready, all replicas would leave the balancer at once and the reads with them.
            broker.dependency(Kind::Degradable),
        ];

        let alternatives = Alternatives {
            inserts: config.inserts.make()(),
            touch: config.touch.make()(),
            announce: config.announce.make()(),
            placement: config.placement.make()(db),
        };
        let context = Ctx {
            clock: Utc::now,
            broker: broker.clone(),
            exchange: config.exchange,
        };
        let plan = Plan::compile(alternatives, config.isolation, context)
            .map_err(|incompatible| StartError::Config(incompatible.to_string()))?;
        let plan = Arc::new(plan);

        let mut background = vec![connection, unattended(Arc::clone(&plan), &cx)];
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

    async fn migrate(config: Config) -> Result<(), StartError> {
        db::migrate(&config.db, &MIGRATIONS).await
    }
}

fn topology(config: &Config) -> Topology {
    Topology {
        exchanges: vec![Exchange { name: config.exchange }],
        queues: vec![Queue {
            name: config.queue,
            single_active_consumer: true,
            bindings: vec![(config.exchange, announce::TOUR_CREATED)],
        }],
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
