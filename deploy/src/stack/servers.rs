//! The servers of a stack, each started and waited for.

use std::path::Path;
use std::time::Duration;

use crate::error::DeployError;
use crate::haproxy::{Gateway, HaProxy};
use crate::pgbouncer::PgBouncer;
use crate::ports::{Port, Ports};
use crate::postgres::{Database, Postgres, Preset};
use crate::process::{Process, Spawner};
use crate::rabbitmq::RabbitMq;
use crate::redis::Redis;
use crate::secrets::Secrets;
use crate::setup;
use crate::topology::Topology;

/// The first start makes a cluster, recovery after a crash replays its log.
const POSTGRES_WITHIN: Duration = Duration::from_secs(60);
const REDIS_WITHIN: Duration = Duration::from_secs(15);
/// 5 s on an idle machine, several times that on a busy one.
const RABBITMQ_WITHIN: Duration = Duration::from_secs(90);
const PGBOUNCER_WITHIN: Duration = Duration::from_secs(15);
const HAPROXY_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct Servers {
    pub(crate) postgres: Postgres,
    pub(crate) pgbouncer: PgBouncer,
    pub(crate) redis: Redis,
    pub(crate) rabbitmq: RabbitMq,
    pub(crate) haproxy: HaProxy,
}

impl Servers {
    /// Finds the programs; nothing is started.
    pub(super) fn new(
        stack: &Path,
        ports: &Ports,
        secrets: &mut Secrets,
        topology: &Topology,
    ) -> Result<Self, DeployError> {
        let programs = setup::binaries()?;
        let of = |port| ports.of(port);
        let haproxy = stack.join("haproxy");
        let postgres = Postgres::new(
            &programs.postgres,
            stack,
            of(Port::Postgres),
            secrets.get("postgres")?,
            topology.volumes.get("postgres").copied(),
        )?;
        Ok(Self {
            pgbouncer: PgBouncer::new(&programs.pgbouncer, postgres.clone(), of(Port::PgBouncer)),
            postgres,
            redis: Redis::new(
                &programs.redis,
                &stack.join("redis"),
                of(Port::Redis),
                secrets.get("redis")?,
            ),
            rabbitmq: RabbitMq::new(&programs, stack, ports, secrets)?,
            haproxy: HaProxy::new(&programs.haproxy, &haproxy, of(Port::Front), of(Port::HaproxyStats)),
        })
    }

    /// Starts PostgreSQL with a preset, every parameter of it in force.
    pub(super) async fn start_postgres(&self, preset: &Preset, spawner: &Spawner) -> Result<(), DeployError> {
        let process = spawner.spawn(&self.postgres.launch(preset).await?)?;
        process.ready(POSTGRES_WITHIN, || self.postgres.probe()).await?;
        self.postgres.verify(preset).await
    }

    /// Starts PgBouncer with so many connections for each of `databases`; PostgreSQL must be up.
    pub(super) async fn start_pgbouncer<'a>(
        &'a self,
        connections: u16,
        databases: impl Iterator<Item = &'a Database>,
        spawner: &Spawner,
    ) -> Result<(), DeployError> {
        let passwords = databases.map(|database| (database.name.as_str(), database.password.as_str()));
        let process = spawner.spawn(&self.pgbouncer.launch(connections, passwords)?)?;
        process.ready(PGBOUNCER_WITHIN, || self.pgbouncer.probe()).await
    }

    pub(super) async fn start_redis(&self, spawner: &Spawner) -> Result<(), DeployError> {
        let process = spawner.spawn(&self.redis.launch()?)?;
        process.ready(REDIS_WITHIN, || self.redis.probe()).await?;
        self.redis.flush().await
    }

    pub(super) async fn start_rabbitmq(&self, spawner: &Spawner) -> Result<(), DeployError> {
        let process = spawner.spawn(&self.rabbitmq.launch()?)?;
        process.ready(RABBITMQ_WITHIN, || self.rabbitmq.probe()).await?;
        self.rabbitmq.purge().await
    }

    pub(super) async fn start_haproxy(&self, gateways: &[Gateway], spawner: &Spawner) -> Result<Process, DeployError> {
        spawner.spawn(&self.haproxy.launch(gateways).await?)
    }

    /// Waits until a server that was started, or may go on, answers its own protocol.
    pub(super) async fn answers(&self, process: &Process) -> Result<(), DeployError> {
        match process.info().component.as_str() {
            "postgres" => process.ready(POSTGRES_WITHIN, || self.postgres.probe()).await,
            "pgbouncer" => process.ready(PGBOUNCER_WITHIN, || self.pgbouncer.probe()).await,
            "redis" => process.ready(REDIS_WITHIN, || self.redis.probe()).await,
            "rabbitmq" => process.ready(RABBITMQ_WITHIN, || self.rabbitmq.probe()).await,
            _ => process.ready(HAPROXY_WITHIN, || self.haproxy.listens()).await,
        }
    }

    /// Waits until HAProxy's own checks have found every gateway ready.
    pub(super) async fn balanced(&self, haproxy: &Process, gateways: &[Gateway]) -> Result<(), DeployError> {
        haproxy.ready(HAPROXY_WITHIN, || self.haproxy.probe(gateways)).await
    }
}
