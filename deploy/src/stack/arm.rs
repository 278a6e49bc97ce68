//! What differs between arms: databases, links, services; and the way from one arm to the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::try_join;

use super::{Stack, bring_up, clients, pooler, snapshots};
use crate::cpus::Limits;
use crate::error::DeployError;
use crate::haproxy::Gateway;
use crate::link::Upstream;
use crate::links::Link;
use crate::ports::{Port, ReplicaPorts, local};
use crate::postgres::{Applied, Preset};
use crate::process::{Kind, Process};
use crate::schema::{self, Change};
use crate::secrets::Secrets;
use crate::services::{Description, Replica, fetch_token, write_clients, write_endpoints};
use crate::topology::{LinkName, Topology};

const TOKEN_WITHIN: Duration = Duration::from_secs(15);

/// Replicas to start, by service: (number, ports).
pub(super) type Plan = BTreeMap<String, Vec<(u16, ReplicaPorts)>>;

pub(super) async fn switch(
    stack: &mut Stack,
    topology: Topology,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DeployError> {
    let began = Instant::now();
    if topology.name != stack.topology.name {
        let name = &stack.topology.name;
        return Err(DeployError::Usage(format!(
            "the stack `{name}` cannot become `{}`",
            topology.name
        )));
    }
    if topology.volumes != stack.topology.volumes {
        return Err(DeployError::Usage(
            "the volumes of a stack are mounted when it comes up; bring it down and up again for others".to_owned(),
        ));
    }
    let descriptions = bring_up::check(&topology).await?;
    let mut secrets = Secrets::open(stack.dir.path())?;
    let load_clients = clients::of_load(&topology, &descriptions, &mut secrets)?;
    stack.registry.update(|run| {
        run.ready = false;
        run.topology = topology.clone();
    })?;

    // A fault ends with the arm it belongs to, and an arm begins with all its parts.
    stack.suffered.end().await;
    let gateways = balanced(&stack.topology, gateways_of(stack));
    stop_services(stack).await?;
    pooler::stop(stack).await?;
    stack.load_clients = load_clients;
    stack.databases = bring_up::databases(&topology, &descriptions, &mut secrets)?;
    stack.descriptions = descriptions;
    stack.topology = topology;
    progress("services drained and stopped");
    start_links(stack).await?;
    let plan = plan(stack)?;
    if gateways != balanced(&stack.topology, planned_gateways(stack, &plan)) {
        stop_front(stack).await?;
    }
    let this = &*stack;
    let postgres = async {
        apply_preset(this).await?;
        snapshots::make(this).await?;
        restore_databases(this).await
    };
    try_join!(postgres, this.servers.redis.flush(), this.servers.rabbitmq.purge())?;
    pooler::start(this).await?;
    progress("database, cache and queues restored");
    let services = start_services(this, &plan, std::future::ready(()));
    let (replicas, ()) = try_join!(services, this.servers.postgres.checkpoint())?;
    stack.replicas = replicas;
    snapshots::remember(stack);
    calibrate(stack, progress).await?;
    progress(&format!("ready after {:.1} s", began.elapsed().as_secs_f64()));
    stack.registry.update(|run| run.ready = true)
}

/// Brings the running PostgreSQL to the topology's preset, by a restart where a parameter needs one and may have it.
async fn apply_preset(stack: &Stack) -> Result<(), DeployError> {
    let boot = boot_preset(&stack.topology)?;
    if stack.servers.postgres.apply(&boot).await? == Applied::NeedsRestart {
        if let Some(process) = stack.registry.named("postgres") {
            process.stop().await?;
        }
        stack.servers.start_postgres(&boot, &stack.spawner).await?;
    }
    reload_preset(stack).await
}

/// The preset that PostgreSQL is started with.
pub(super) fn boot_preset(topology: &Topology) -> Result<Preset, DeployError> {
    Preset::load(if topology.postgres_reload_only {
        Preset::DEFAULT
    } else {
        &topology.postgres_preset
    })
}

/// What comes after the start where the preset is to be reloaded only. What needs a restart does not get it: that is the
/// point.
pub(super) async fn reload_preset(stack: &Stack) -> Result<(), DeployError> {
    if stack.topology.postgres_reload_only {
        let preset = Preset::load(&stack.topology.postgres_preset)?;
        stack.servers.postgres.apply(&preset).await?;
    }
    Ok(())
}

/// Asks every service of the topology what it is, and refuses what they cannot take or do.
pub(super) async fn descriptions(topology: &Topology) -> Result<BTreeMap<String, Description>, DeployError> {
    let mut descriptions = BTreeMap::new();
    let changes = schema::read(&topology.schema)?;
    for service in topology.replicas.keys() {
        let description = Description::ask(service).await?;
        description.check_settings(topology)?;
        description.check_commands(topology)?;
        description.check_schema(topology, &changes)?;
        descriptions.insert(service.clone(), description);
    }
    if topology.pgbouncer.is_some() && !descriptions.values().any(Description::can_be_pooled) {
        return Err(DeployError::Usage(
            "a PgBouncer in transaction pooling would have no client: no service of this stack can do without named \
             statements"
                .to_owned(),
        ));
    }
    Ok(descriptions)
}

/// Numbers and ports of the replicas the topology asks for, with the limits on their CPU made.
pub(super) fn plan(stack: &mut Stack) -> Result<Plan, DeployError> {
    // Those there are end first: the new ones may have their names.
    stack.limits = Limits::default();
    for (service, cores) in &stack.topology.cpus {
        for number in 1..=stack.topology.replicas[service] {
            stack
                .limits
                .add(&format!("{service}-{number}"), *cores, stack.dir.path());
        }
    }
    let mut plan = Plan::new();
    for (service, replicas) in &stack.topology.replicas {
        let numbered = (1..=*replicas).map(|number| Ok((number, stack.ports.replica(service, number)?)));
        plan.insert(service.clone(), numbered.collect::<Result<_, DeployError>>()?);
    }
    Ok(plan)
}

/// Makes every database a fresh copy of its snapshot with the topology's changes of its schema; all at once, since each waits
/// for the disk most of the time. The copies are yet to be written out by a checkpoint, for which nobody has to wait who does
/// not measure.
pub(super) async fn restore_databases(stack: &Stack) -> Result<(), DeployError> {
    let changes = schema::read(&stack.topology.schema)?;
    let mut restoring = JoinSet::new();
    for (service, description) in &stack.descriptions {
        let Some(database) = description.database().and_then(|name| stack.databases.get(name)) else {
            continue;
        };
        let (postgres, database) = (stack.servers.postgres.clone(), database.clone());
        let own = changes.iter().filter(|change| change.service == *service);
        let own: Vec<Change> = own.cloned().collect();
        restoring.spawn(async move {
            postgres.restore(&database).await?;
            for change in &own {
                postgres.change(&database, change).await?;
            }
            Ok::<_, DeployError>(())
        });
    }
    while let Some(outcome) = restoring.join_next().await {
        outcome.map_err(|panic| DeployError::server("restore the databases", panic))??;
    }
    Ok(())
}

/// Starts the links the topology asks for at no distance, so that what comes up behind them comes up at full speed, and
/// ends the others; [`calibrate`] gives them their distance.
pub(super) async fn start_links(stack: &mut Stack) -> Result<(), DeployError> {
    for (name, own, upstream) in [
        (LinkName::Db, Port::LinkDb, Port::Postgres),
        (LinkName::Redis, Port::LinkRedis, Port::Redis),
        (LinkName::Broker, Port::LinkBroker, Port::Amqp),
    ] {
        let wanted = stack.topology.rtt.get(&name).is_some_and(|rtt| !rtt.is_zero());
        let own = stack.ports.of(own);
        let direct = || Upstream::Tcp(local(stack.ports.of(upstream)));
        let upstream = match name {
            LinkName::Db if stack.topology.pgbouncer.is_some() => Upstream::Tcp(local(stack.ports.of(Port::PgBouncer))),
            LinkName::Db => stack.servers.postgres.socket().map_or_else(direct, Upstream::Unix),
            LinkName::Redis | LinkName::Broker => direct(),
        };
        let hot = stack.descriptions.values().filter_map(Description::hot_relation);
        let watch: Vec<&str> = hot.filter(|_| name == LinkName::Db).collect();
        let mut running = stack.links.remove(&name);
        if let Some(link) = running.take_if(|link| *link.upstream() != upstream) {
            link.stop().await?;
        }
        match (running, wanted) {
            (None, false) => {}
            (Some(link), false) => link.stop().await?,
            (Some(link), true) => {
                link.set(Duration::ZERO).await?;
                stack.links.insert(name, link);
            }
            (None, true) => {
                let link = Link::start(name, own, upstream, &watch, stack.dir.path(), &stack.spawner)?;
                stack.links.insert(name, Arc::new(link));
            }
        }
    }
    Ok(())
}

/// Gives every link the delay that makes the measured round trip the one that was asked for. The distance is asked for
/// without PgBouncer: what that takes comes on top, or it would cost nothing.
pub(super) async fn calibrate(stack: &Stack, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
    for (name, link) in &stack.links {
        let mut asked = stack.topology.rtt.get(name).copied().unwrap_or_default();
        if *name == LinkName::Db {
            asked += pooler::hop(stack).await?;
        }
        let url = stack.url_over(*name, Some(link.port()));
        progress(&link.calibrate(asked, &url).await?);
    }
    Ok(())
}

/// Starts the replicas of the plan and HAProxy in front of the gateways, and waits until a client could begin.
///
/// What talks to the broker is started after `broker`, when that is up. A service would wait for it by itself, but finds
/// it only at its next try, up to 2 s later.
pub(super) async fn start_services(
    stack: &Stack,
    plan: &Plan,
    broker: impl Future<Output = ()>,
) -> Result<BTreeMap<String, Vec<Replica>>, DeployError> {
    let wiring = stack.wiring();
    // The load's own is among both.
    let further = stack.load_clients.iter().skip(1);
    write_clients(&wiring, stack.clients.iter().chain(further), &stack.clients)?;
    let endpoints = plan
        .iter()
        .filter(|(service, _)| !stack.descriptions[*service].balances());
    let endpoints = endpoints.map(|(service, replicas)| (service.clone(), replicas.iter().map(|(_, p)| *p).collect()));
    write_endpoints(&wiring.endpoints_file, &endpoints.collect())?;

    let mut replicas: BTreeMap<String, Vec<Replica>> = BTreeMap::new();
    let mut start = |with_broker: bool| -> Result<(), DeployError> {
        for (service, numbered) in plan {
            let description = &stack.descriptions[service];
            if description.takes("AMQP_URL") != with_broker {
                continue;
            }
            let started = numbered.iter().map(|(number, ports)| {
                description.start(
                    *number,
                    *ports,
                    &stack.topology,
                    &wiring,
                    stack.dir.path(),
                    &stack.spawner,
                )
            });
            replicas.insert(service.clone(), started.collect::<Result<_, DeployError>>()?);
        }
        Ok(())
    };
    start(false)?;
    let gateways = balanced(&stack.topology, planned_gateways(stack, plan));
    let front = match stack.registry.named("haproxy") {
        Some(running) => Some(running),
        None if gateways.is_empty() => None,
        None => Some(stack.servers.start_haproxy(&gateways, &stack.spawner).await?),
    };
    broker.await;
    start(true)?;
    all_ready(replicas.values().flatten(), &stack.http).await?;
    if let Some(front) = front {
        stack.servers.balanced(&front, &gateways).await?;
        token_through(stack, &front).await?;
    }
    Ok(replicas)
}

/// Waits for all of them at once: one that waits for another must not hide why that one has ended.
async fn all_ready<'a>(replicas: impl Iterator<Item = &'a Replica>, http: &reqwest::Client) -> Result<(), DeployError> {
    let mut waiting = JoinSet::new();
    for replica in replicas {
        let (replica, http) = (replica.clone(), http.clone());
        waiting.spawn(async move { replica.ready(&http).await });
    }
    while let Some(outcome) = waiting.join_next().await {
        outcome.map_err(|panic| DeployError::server("wait for the services", panic))??;
    }
    Ok(())
}

/// The last proof that the way from a client to the issuer is open; a stack without an issuer has no such way.
async fn token_through(stack: &Stack, front: &Process) -> Result<(), DeployError> {
    let issues = |description: &Description| description.takes("CLIENTS_FILE");
    let (true, Some(client)) = (stack.descriptions.values().any(issues), stack.clients.first()) else {
        return Ok(());
    };
    let url = format!("http://{}", stack.front());
    front
        .ready(TOKEN_WITHIN, || fetch_token(&stack.http, &url, client))
        .await
}

/// Drains and ends every replica, also those of a start that failed half-way.
pub(super) async fn stop_services(stack: &mut Stack) -> Result<(), DeployError> {
    stack.replicas.clear();
    let live = stack.registry.live();
    let services: Vec<_> = live
        .iter()
        .filter(|process| process.info().kind == Kind::Service)
        .collect();
    for process in &services {
        process.signal_stop();
    }
    for process in &services {
        process.stop().await?;
    }
    Ok(())
}

/// Ends HAProxy, if it runs.
pub(super) async fn stop_front(stack: &Stack) -> Result<(), DeployError> {
    match stack.registry.named("haproxy") {
        Some(front) => front.stop().await,
        None => Ok(()),
    }
}

pub(super) fn gateway(number: u16, ports: ReplicaPorts) -> Gateway {
    Gateway {
        number,
        http: ports.http,
        admin: ports.admin,
    }
}

/// The gateways that run.
fn gateways_of(stack: &Stack) -> Vec<Gateway> {
    let balancing = stack
        .replicas
        .iter()
        .filter(|(service, _)| stack.descriptions[*service].balances());
    balancing
        .flat_map(|(_, replicas)| replicas.iter().map(|replica| gateway(replica.number, replica.ports)))
        .collect()
}

/// The gateways that HAProxy has a line for.
fn balanced(topology: &Topology, mut gateways: Vec<Gateway>) -> Vec<Gateway> {
    if topology.front_single {
        gateways.truncate(1);
    }
    gateways
}

/// The gateways that will run.
fn planned_gateways(stack: &Stack, plan: &Plan) -> Vec<Gateway> {
    let balancing = plan
        .iter()
        .filter(|(service, _)| stack.descriptions[*service].balances());
    balancing
        .flat_map(|(_, replicas)| replicas.iter().map(|(number, ports)| gateway(*number, *ports)))
        .collect()
}
