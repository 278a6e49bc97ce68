//! Plans in this process, without a service around them: many on one database, one exchange and one connection each to
//! PostgreSQL's, Redis's and RabbitMQ's servers.

use std::sync::Arc;

use chassis::broker::{Broker, Exchange, Queue, Topology};
use chassis::service::{Chassis, Drain, Service as _};
use chrono::Utc;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tour_data::TourData;
use tour_data::axis::Axis;
use tour_data::placement::{Placement, Shards};
use tour_data::plan::{Alternatives, Clock, Ctx, Incompatible, Isolation, Plan, Spec};
use tour_data::tour::{Identity, NewTour, parse};
use uuid::Uuid;

use super::{Database, MessageTap, Names, PgBouncer, eventually, server};

/// The registered alternative of that name.
pub(crate) fn make<A: Axis + ?Sized>(name: &str) -> A::Make {
    A::registry()
        .iter()
        .find(|entry| entry.spec.name == name)
        .expect("it is registered")
        .make
}

/// Of all registered alternatives.
pub(crate) fn specs<A: Axis + ?Sized>() -> Vec<&'static Spec> {
    A::registry().iter().map(|entry| entry.spec).collect()
}

/// A tour as a request with this payload brings it.
pub(crate) fn new_tour(payload: Value, key: Option<&str>) -> NewTour {
    let mut digest = [0; 32];
    // Any function of the content will do.
    for (at, byte) in payload.to_string().bytes().enumerate() {
        digest[at % 32] ^= byte.rotate_left((at / 32 % 8) as u32);
    }
    let dto = serde_json::from_value(payload).expect("the payload is a tour");
    let identity = Identity {
        now: Utc::now(),
        new_id: &mut Uuid::now_v7,
        idempotency_key: key.map(str::to_owned),
        request_digest: digest,
    };
    parse(dto, identity).expect("the payload is valid")
}

/// What a plan needs, on placement `single`. Nothing is connected before it is used.
pub(crate) fn context(database: &Database, redis: &str, amqp: &str) -> Ctx {
    let config = super::config(&super::variables(&database.url(), redis, amqp, &[]));
    let chassis = chassis(database);
    let (broker, _) = Broker::connect(&config.broker, Topology::default(), &chassis).expect("a good URL");
    let shards = Shards::open(&config, &chassis).expect("a good URL");
    Ctx {
        placement: make::<dyn Placement>("single")(shards).expect("one shard is enough"),
        clock: Utc::now,
        broker,
        exchange: "none",
        touches: "none",
        redis: chassis::cache::pool(&config.redis).expect("a good URL"),
        quiet: CancellationToken::new(),
    }
}

fn chassis(database: &Database) -> Chassis {
    Chassis {
        instance_id: database.name.clone(),
        service: TourData::NAME,
        drain: Drain::default(),
    }
}

/// What plans share.
pub(crate) struct Rig {
    pub(crate) database: Database,
    pub(crate) tap: MessageTap,
    placements: Vec<(&'static str, Arc<dyn Placement>)>,
    cx: Ctx,
    /// Ends the connection to the broker with the rig.
    _tasks: JoinSet<anyhow::Result<()>>,
    _names: Names,
}

/// A schema beside the main one, for placements that can use it.
const SHARD: &str = "shard_1";

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::on(Database::create().await, &[]).await
    }

    /// Through a PgBouncer, without named statements.
    pub(crate) async fn behind(pooler: &PgBouncer) -> Self {
        let database = Database::create().await;
        let url = database.url_via(pooler.addr);
        let more = [("TOUR_DATA_DB_URL", url.as_str()), ("TOUR_DATA_DB_PREPARED", "false")];
        Self::on(database, &more).await
    }

    async fn on(database: Database, more: &[(&str, &str)]) -> Self {
        let names = Names::new();
        let redis = server("ROWLOCK_TEST_REDIS");
        let with = |more: &[(&str, &str)]| {
            let settings = [&[("TOUR_DATA_SHARDS", SHARD)][..], more].concat();
            super::config(&super::variables(&database.url(), &redis, &Names::amqp(), &settings))
        };
        // Those go past a pooler.
        TourData::migrate(with(&[])).await.expect("the migrations apply");
        let config = with(more);
        let chassis = chassis(&database);
        let exchange: &'static str = names.exchange.clone().leak();
        let touches: &'static str = names.touches.clone().leak();
        let topology = Topology {
            exchanges: vec![Exchange { name: exchange }],
            queues: vec![Queue {
                name: touches,
                single_active_consumer: true,
                bindings: Vec::new(),
            }],
        };
        let (broker, connection) = Broker::connect(&config.broker, topology, &chassis).expect("a good URL");
        let mut tasks = JoinSet::new();
        tasks.spawn(connection.run());
        let tap = MessageTap::on(&names).await;
        let shards = Shards::open(&config, &chassis).expect("a good URL");
        let placements = specs::<dyn Placement>().into_iter().map(|spec| {
            // One that has no use for shards refuses them.
            let alone = Shards {
                others: Vec::new(),
                ..shards.clone()
            };
            let make = make::<dyn Placement>(spec.name);
            let placement = make(shards.clone()).or_else(|_| make(alone));
            (spec.name, placement.expect("it has what it needs"))
        });
        let placements: Vec<_> = placements.collect();
        let cx = Ctx {
            placement: Arc::clone(
                &placements
                    .iter()
                    .find(|(name, _)| *name == "single")
                    .expect("it is registered")
                    .1,
            ),
            clock: Utc::now,
            broker: broker.clone(),
            exchange,
            touches,
            redis: chassis::cache::pool(&config.redis).expect("a good URL"),
            quiet: CancellationToken::new(),
        };
        Self {
            database,
            tap,
            placements,
            cx,
            _tasks: tasks,
            _names: names,
        }
    }

    /// Compiles a plan and begins what it does beside the requests.
    pub(crate) fn run(
        &self,
        chosen: Alternatives,
        placement: &str,
        isolation: Isolation,
    ) -> Result<RunningPlan, Incompatible> {
        Self::begin(chosen, isolation, self.context(placement))
    }

    /// The same on placement `single`, by a clock of the test's.
    pub(crate) fn run_by(&self, clock: Clock, chosen: Alternatives) -> Result<RunningPlan, Incompatible> {
        let cx = Ctx {
            clock,
            ..self.context("single")
        };
        Self::begin(chosen, Isolation::ReadCommitted, cx)
    }

    fn begin(chosen: Alternatives, isolation: Isolation, cx: Ctx) -> Result<RunningPlan, Incompatible> {
        let plan = Arc::new(Plan::compile(chosen, isolation, cx)?);
        let mut background = JoinSet::new();
        for task in plan.background() {
            background.spawn(task.run());
        }
        Ok(RunningPlan {
            plan,
            _background: background,
        })
    }

    /// Whether a plan can be compiled. Nothing of it runs.
    pub(crate) fn compiles(&self, chosen: Alternatives, placement: &str) -> Result<(), Incompatible> {
        Plan::compile(chosen, Isolation::ReadCommitted, self.context(placement)).map(drop)
    }

    fn context(&self, placement: &str) -> Ctx {
        let (_, placement) = self
            .placements
            .iter()
            .find(|(name, _)| *name == placement)
            .expect("it is registered");
        Ctx {
            placement: Arc::clone(placement),
            quiet: CancellationToken::new(),
            ..self.cx.clone()
        }
    }

    /// Waits until none of these messages is left in the outbox.
    pub(crate) async fn announced(&self, ids: Vec<String>) {
        eventually("the messages have left the outbox", async || {
            let left = sqlx::query_scalar("SELECT count(*) FROM outbox WHERE message_id = ANY($1)").bind(&ids);
            let left: i64 = left.fetch_one(&self.database.pool).await.expect("the query runs");
            (left == 0).then_some(())
        })
        .await;
    }

    /// So many tenants that nobody else uses, by their keys.
    pub(crate) async fn tenants(&self, count: usize) -> Vec<String> {
        const SQL: &str = "INSERT INTO tenant_config (id, tenant, tenant_key, modified_at) \
            SELECT 1000 + n, 'for a test', 'TEST' || n, '2025-01-01T00:00:00Z' FROM generate_series(1, $1) AS n \
            RETURNING tenant_key";
        sqlx::query_scalar(SQL)
            .bind(i64::try_from(count).expect("they are few"))
            .fetch_all(&self.database.pool)
            .await
            .expect("the tenants are made")
    }

    /// Waits until nothing is left in the tables that only hold what is under way.
    pub(crate) async fn settled(&self) {
        eventually("outbox and events are empty", async || {
            let left = "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM tenant_config_touch)";
            (self.database.number(left).await == 0).then_some(())
        })
        .await;
    }
}

/// A plan with its background work, which is aborted with it.
pub(crate) struct RunningPlan {
    pub(crate) plan: Arc<Plan>,
    _background: JoinSet<anyhow::Result<()>>,
}
