//! A running stack: what the lab holds while it measures, and `rowlock up` while it serves.

mod arm;
mod bring_up;
mod clients;
mod fault;
mod ground;
mod pooler;
mod scale;
mod servers;
mod snapshots;
mod supervise;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use crate::cpus::{CpuUse, Limits};
use crate::error::DeployError;
use crate::faults::Fault;
use crate::guardian::Guardian;
use crate::links::{HoldMeter, Link};
use crate::ports::{Port, Ports, local};
use crate::postgres::{Database, Preset};
use crate::process::{Exit, ProcessInfo, Registry, Spawner};
use crate::services::{Client, Description, Replica, Wiring};
use crate::state::StateDir;
use crate::topology::{LinkName, Topology};
use fault::Suffered;
pub use fault::{Healed, Inflicted};
pub(crate) use ground::Ground;
use servers::Servers;

/// A stack that is up.
///
/// [`Stack::down`] ends it in good order. When it is dropped instead, or its process dies, the guardian ends it.
#[derive(Debug)]
pub struct Stack {
    topology: Topology,
    dir: StateDir,
    /// Held as long as the stack lives: another `up` of the same name meets it.
    _lock: File,
    ports: Ports,
    /// Holds the block of ports, and serves commands once the stack is supervised.
    control: TcpListener,
    /// UUID of the run.
    run: String,
    guardian: Guardian,
    registry: Arc<Registry>,
    spawner: Spawner,
    http: reqwest::Client,
    servers: Servers,
    secrets: ServiceSecrets,
    clients: Vec<Client>,
    /// One for each tenant of the topology.
    load_clients: Vec<Client>,
    descriptions: BTreeMap<String, Description>,
    /// Databases of the services, by name.
    databases: BTreeMap<String, Database>,
    /// Names of the snapshots that were made, or made sure of, since the stack came up.
    snapshots: BTreeSet<String>,
    links: BTreeMap<LinkName, Arc<Link>>,
    suffered: Suffered,
    replicas: BTreeMap<String, Vec<Replica>>,
    /// After the replicas: a group can be removed when nothing runs in it.
    limits: Limits,
}

/// Secrets that all replicas of a service share.
#[derive(Debug)]
struct ServiceSecrets {
    pepper: String,
    key_encryption: String,
    /// Of the client that may ask about tokens.
    introspection: String,
}

impl Stack {
    /// Whether such a stack could be brought up, as far as that can be told without starting a server: its services' programs
    /// are asked what they are.
    ///
    /// # Errors
    /// A wrong topology, or a missing program.
    pub async fn check(topology: &Topology) -> Result<(), DeployError> {
        bring_up::check(topology).await.map(drop)
    }

    /// Starts everything and waits until all of it is ready: every replica with all it depends on, HAProxy with every
    /// gateway up, and a token that was fetched through it. The databases are fresh copies of their snapshots.
    ///
    /// `progress` gets a line for the reader as each part is ready.
    ///
    /// # Errors
    /// A wrong topology, a taken port, a stack of this name that already runs, a missing program, or a part that does
    /// not come up; then everything that was started has been ended again.
    pub async fn up(topology: Topology, progress: &mut dyn FnMut(&str)) -> Result<Self, DeployError> {
        bring_up::up(topology, progress).await
    }

    /// Turns the stack into another arm: drains and ends the services, takes the databases back to their snapshots,
    /// empties Redis and the queues, applies preset, links, settings and replicas, and starts the services again. The
    /// servers stay up, but for PostgreSQL where a parameter of the preset needs a restart. Name and ports stay too.
    ///
    /// # Errors
    /// As of [`Stack::up`]. The stack is then not usable, except for another `switch` or [`Stack::down`].
    pub async fn switch(&mut self, topology: Topology, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
        arm::switch(self, topology, progress).await
    }

    /// The same arm once more: databases at their snapshots, Redis and queues empty, services started anew.
    ///
    /// # Errors
    /// As of [`Stack::switch`].
    pub async fn restore(&mut self, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
        arm::switch(self, self.topology.clone(), progress).await
    }

    /// Changes the number of replicas of one service while it serves; no request fails for it.
    ///
    /// # Errors
    /// The service is not part of the stack, the number is out of range, or a new replica does not become ready; then
    /// the replicas are what they were.
    pub async fn scale(&mut self, service: &str, replicas: u16) -> Result<(), DeployError> {
        scale::scale(self, service, replicas).await
    }

    /// Commits that were acknowledged in so long a time before a crash of PostgreSQL may be gone after it: what the preset
    /// declares; zero for one that loses nothing.
    ///
    /// # Errors
    /// The preset's file has changed since and is wrong now.
    pub fn may_lose(&self) -> Result<Duration, DeployError> {
        Ok(Preset::load(&self.topology.postgres_preset)?.may_lose())
    }

    /// Inflicts a fault and returns when it is felt; it heals by itself after its duration, or when the stack changes or
    /// goes down. Processes that a fault ends are not among [`Stack::exited`].
    ///
    /// # Errors
    /// An unknown kind or target, a target that does not run or suffers a fault already, or the fault cannot be inflicted.
    pub async fn fault(&self, fault: &Fault) -> Result<Inflicted, DeployError> {
        fault::inflict(self, fault).await
    }

    /// What runs.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// HAProxy, where clients send their requests.
    pub fn front(&self) -> SocketAddr {
        local(self.ports.of(Port::Front))
    }

    /// Superuser URL of a database, direct: probes and audits must not pay the emulated distance.
    pub fn postgres(&self, database: &str) -> String {
        self.servers.postgres.url(database, None)
    }

    /// Superuser URL of a database over the link that the services use; direct when the topology has none.
    pub fn postgres_via_link(&self, database: &str) -> String {
        self.servers.postgres.url(database, self.link_port(LinkName::Db))
    }

    /// URL of Redis, direct.
    pub fn redis(&self) -> String {
        self.servers.redis.url(None)
    }

    /// URL of RabbitMQ, direct.
    pub fn amqp(&self) -> String {
        self.servers.rabbitmq.url(None)
    }

    /// Admin addresses of a service's replicas, in the order of their numbers.
    pub fn admin(&self, service: &str) -> Vec<SocketAddr> {
        let replicas = self.replicas.get(service).into_iter().flatten();
        replicas.map(|replica| local(replica.ports.admin)).collect()
    }

    /// An OAuth client: `rowlock-load` for the tenant of the shipped payload, `rowlock-other` for another. A user of the same
    /// name, password and tenant exists as well.
    pub fn client(&self, id: &str) -> Option<Client> {
        self.clients.iter().find(|client| client.id == id).cloned()
    }

    /// The OAuth clients of a load, one for each tenant of the topology; the first is `rowlock-load`.
    pub fn load_clients(&self) -> &[Client] {
        &self.load_clients
    }

    /// The replicas that clients reach through HAProxy, by name.
    pub fn gateways(&self) -> Vec<String> {
        let balancing = self
            .replicas
            .iter()
            .filter(|(service, _)| self.descriptions[*service].balances());
        let names = balancing.flat_map(|(service, replicas)| replicas.iter().map(|replica| replica.name(service)));
        names.collect()
    }

    /// Requests that HAProxy has sent to each gateway it knows, since it was started.
    ///
    /// # Errors
    /// HAProxy does not answer.
    pub async fn front_requests(&self) -> Result<BTreeMap<String, u64>, DeployError> {
        self.servers.haproxy.requests().await
    }

    /// Tables of a service's database that are not what they are in its snapshot; none on a restored one that nobody has
    /// written to.
    ///
    /// # Errors
    /// PostgreSQL does not answer, or the stack has no such database.
    pub async fn differs_from_snapshot(&self, database: &str) -> Result<Vec<String>, DeployError> {
        let known = self.databases.get(database);
        let known = known.ok_or_else(|| DeployError::Usage(format!("the stack has no database `{database}`")))?;
        self.servers.postgres.differs(known).await
    }

    /// Makes Redis forget every key, and makes sure that none is left.
    ///
    /// # Errors
    /// Redis does not answer, or something writes to it.
    pub async fn empty_cache(&self) -> Result<(), DeployError> {
        self.servers.redis.flush().await
    }

    /// Tunes the delay of every link anew, until the measured round trip is the one that was asked for.
    ///
    /// # Errors
    /// A link or a server behind one does not answer.
    pub async fn calibrate(&self, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
        arm::calibrate(self, progress).await
    }

    /// The replicas whose CPU should be limited and is not, with the reason: the machine does not permit it.
    pub fn unlimited(&self) -> BTreeMap<String, String> {
        self.limits.refused()
    }

    /// Measures what the CPU limit of a replica comes to, by a program in its control group that takes all it can get; that
    /// takes half a second, in which the replica gets less than its share.
    ///
    /// # Errors
    /// The replica has no limit, or its group cannot be read.
    pub async fn measured_cpu(&self, replica: &str) -> Result<CpuUse, DeployError> {
        let process = self.registry.named(replica);
        let pid = process.map_or(0, |process| process.info().pid);
        self.limits.measure(replica, pid, &self.run).await
    }

    /// Every process that runs, oldest first.
    pub fn processes(&self) -> Vec<ProcessInfo> {
        let live = self.registry.live();
        live.iter()
            .map(|process| process.info().clone())
            .chain([self.guardian.info().clone()])
            .collect()
    }

    /// The processes that ended without being asked to, since the last call.
    pub fn exited(&mut self) -> Vec<Exit> {
        let mut ended = self.registry.ended();
        ended.extend(self.guardian.ended());
        ended
    }

    /// Median round trip to a server the way the services reach it, over the link if the topology has one: a `SELECT 1`,
    /// a `PING`, a `basic.qos`.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn measured_rtt(&self, link: LinkName) -> Result<Duration, DeployError> {
        let port = match link {
            LinkName::Db => self.pooled_port().or(self.link_port(link)),
            LinkName::Redis | LinkName::Broker => self.link_port(link),
        };
        crate::links::measure(link, &self.url_over(link, port)).await
    }

    /// The round trip that a link was tuned for: the one that was asked for and, to PostgreSQL, what a PgBouncer before it
    /// takes. `None` where there is no link.
    pub fn intended_rtt(&self, link: LinkName) -> Option<Duration> {
        self.links.get(&link).map(|link| link.aim())
    }

    /// Parameters of the preset that PostgreSQL does not run with, as `NAME should be … and is …`. There are none unless the
    /// topology says that the preset is only reloaded.
    ///
    /// # Errors
    /// PostgreSQL does not answer.
    pub async fn postgres_not_in_force(&self) -> Result<Vec<String>, DeployError> {
        let preset = Preset::load(&self.topology.postgres_preset)?;
        self.servers.postgres.not_in_force(&preset).await
    }

    /// Round trips that have passed over a link since it was started.
    ///
    /// # Errors
    /// The topology has no such link, or it does not answer.
    pub async fn link_round_trips(&self, link: LinkName) -> Result<u64, DeployError> {
        let found = self.links.get(&link).ok_or_else(|| {
            DeployError::Usage(format!(
                "the stack has no emulated distance on {link}; give it one with --rtt {link}=1ms"
            ))
        })?;
        found.round_trips().await
    }

    /// What tells for how long the services' hot row is locked, on the link to PostgreSQL; `None` where that is a direct
    /// connection, or no service names a hot relation.
    pub fn hold_meter(&self) -> Option<HoldMeter> {
        let hot = self
            .descriptions
            .values()
            .any(|service| service.hot_relation().is_some());
        let link = self.links.get(&LinkName::Db).filter(|_| hot)?;
        Some(HoldMeter::of(Arc::clone(link)))
    }

    /// What a service of the stack says of itself (`SERVICE --describe`); null for a service that is not part of it.
    pub fn describe(&self, service: &str) -> serde_json::Value {
        self.descriptions
            .get(service)
            .map(|description| description.json().clone())
            .unwrap_or_default()
    }

    /// Ends everything: requests in flight first, the servers after the services, each within its bound.
    ///
    /// # Errors
    /// A process that is still there after SIGKILL.
    pub async fn down(self) -> Result<(), DeployError> {
        bring_up::down(self).await
    }

    /// Keeps the stack up until Ctrl-C, SIGTERM or a `down` from another terminal, then ends it. Meanwhile other
    /// terminals can change it, see [`crate::control::Remote`], and `progress` gets a line for what happens to it.
    ///
    /// # Errors
    /// As of [`Stack::down`].
    pub async fn supervise(self, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
        supervise::supervise(self, progress).await
    }

    /// Where services that can go through PgBouncer connect, when that is not PostgreSQL itself.
    fn pooled_port(&self) -> Option<u16> {
        let pooler = self.topology.pgbouncer.map(|_| self.servers.pgbouncer.port());
        pooler.map(|pooler| self.link_port(LinkName::Db).unwrap_or(pooler))
    }

    fn link_port(&self, link: LinkName) -> Option<u16> {
        self.links.get(&link).map(|link| link.port())
    }

    /// URL of the server behind a link, at the given port of the link or direct.
    fn url_over(&self, link: LinkName, port: Option<u16>) -> String {
        match link {
            LinkName::Db => self.servers.postgres.url("postgres", port),
            LinkName::Redis => self.servers.redis.url(port),
            LinkName::Broker => self.servers.rabbitmq.url(port),
        }
    }

    fn wiring(&self) -> Wiring {
        let databases = |port: Option<u16>| -> BTreeMap<String, String> {
            let url = |database: &Database| {
                let Database { name, password, .. } = database;
                (name.clone(), self.servers.postgres.url_as(name, password, name, port))
            };
            self.databases.values().map(url).collect()
        };
        let pooled = self.pooled_port();
        // With PgBouncer the link leads to it.
        let direct = if pooled.is_some() {
            None
        } else {
            self.link_port(LinkName::Db)
        };
        Wiring {
            databases: databases(direct),
            pooled: pooled.map(|port| databases(Some(port))).unwrap_or_default(),
            redis: self.url_over(LinkName::Redis, self.link_port(LinkName::Redis)),
            amqp: self.url_over(LinkName::Broker, self.link_port(LinkName::Broker)),
            issuer: format!("http://{}", self.front()),
            endpoints_file: self.dir.services().join("endpoints.json"),
            clients_file: self.dir.services().join("clients.json"),
            users_file: self.dir.services().join("users.json"),
            introspection_secret: self.secrets.introspection.clone(),
            secret_pepper: self.secrets.pepper.clone(),
            key_encryption_secret: self.secrets.key_encryption.clone(),
            groups: self.limits.groups(),
        }
    }
}
