//! From nothing to ready, and back.
//!
//! The broker takes longer to start than everything else together, so it starts first and the rest comes up meanwhile;
//! only the services that talk to it are started after it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::try_join;
use uuid::Uuid;

use super::fault::Suffered;
use super::servers::Servers;
use super::{ServiceSecrets, Stack, arm, clients, pooler, snapshots};
use crate::cpus::Limits;
use crate::error::DeployError;
use crate::guardian::{self, Guardian, Identity, sweep};
use crate::ports::Ports;
use crate::postgres::{Database, Preset};
use crate::process::{Registry, Spawner};
use crate::secrets::Secrets;
use crate::services::Description;
use crate::state::{Run, StateDir};
use crate::topology::Topology;

/// One admin request of the stack itself; the bounds of what it waits for are longer.
const HTTP_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn up(topology: Topology, progress: &mut dyn FnMut(&str)) -> Result<Stack, DeployError> {
    let began = Instant::now();
    let mut stack = prepare(topology, progress).await?;
    match start(&mut stack, progress).await {
        Ok(()) => {
            progress(&format!("ready after {:.1} s", began.elapsed().as_secs_f64()));
            Ok(stack)
        }
        Err(error) => {
            // The reason of the failure is what the reader needs; the guardian ends what this cannot.
            let _ = down(stack).await;
            Err(error)
        }
    }
}

/// Refuses what can be seen to be wrong before anything is started; gives what the services say of themselves.
pub(super) async fn check(topology: &Topology) -> Result<BTreeMap<String, Description>, DeployError> {
    topology.check()?;
    Preset::load(&topology.postgres_preset)?;
    let descriptions = arm::descriptions(topology).await?;
    clients::tenants(topology, &descriptions)?;
    Ok(descriptions)
}

/// Everything that can be refused before a process is started, then the guardian.
async fn prepare(topology: Topology, progress: &mut dyn FnMut(&str)) -> Result<Stack, DeployError> {
    let descriptions = check(&topology).await?;
    let dir = StateDir::of(&topology.name);
    dir.create()?;
    let lock = dir.lock(&topology.name)?;
    dir.clean_up(progress).await?;
    dir.empty_logs()?;

    let (ports, control) = Ports::reserve(topology.port_base)?;
    let mut secrets = Secrets::open(dir.path())?;
    let servers = Servers::new(dir.path(), &ports, &mut secrets, &topology)?;
    let databases = databases(&topology, &descriptions, &mut secrets)?;
    let clients = clients::base(&mut secrets)?;
    let load_clients = clients::of_load(&topology, &descriptions, &mut secrets)?;
    let http = reqwest::Client::builder()
        .no_proxy()
        .timeout(HTTP_WITHIN)
        .pool_max_idle_per_host(0)
        .build();
    let http = http.map_err(|error| DeployError::server("prepare an HTTP client", error))?;

    let run = Uuid::new_v4().to_string();
    let guardian = Guardian::start(&guardian::program()?, &run, &dir.logs().join("guardian.log"))?;
    if let Ok(volume) = servers.postgres.volume() {
        guardian.handle().mounted(&volume.at);
    }
    let registry = Registry::new(dir.clone(), Run::new(run.clone(), topology.clone()))?;
    let spawner = Spawner::new(dir.logs(), run.clone(), registry.clone(), guardian.handle());
    let secrets = ServiceSecrets {
        pepper: secrets.get("user pepper")?,
        key_encryption: secrets.get("user key encryption")?,
        introspection: secrets.get("client introspection")?,
    };
    let stack = Stack {
        topology,
        dir,
        _lock: lock,
        ports,
        control,
        run,
        guardian,
        registry,
        spawner,
        http,
        servers,
        secrets,
        clients,
        load_clients,
        descriptions,
        databases,
        snapshots: BTreeSet::new(),
        links: BTreeMap::new(),
        suffered: Suffered::default(),
        replicas: BTreeMap::new(),
        limits: Limits::default(),
    };
    stack.registry.update(|run| {
        run.port_base = stack.ports.base();
        run.front = stack.front().to_string();
        run.postgres = stack.postgres("");
    })?;
    Ok(stack)
}

async fn start(stack: &mut Stack, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
    let began = Instant::now();
    let progress = RefCell::new(progress);
    let say = |what: &str| (progress.borrow_mut())(&format!("{what} after {:.1} s", began.elapsed().as_secs_f64()));
    let preset = arm::boot_preset(&stack.topology)?;
    let plan = arm::plan(stack)?;
    arm::start_links(stack).await?;
    let this = &*stack;
    let (broker_up, broker_is_up) = oneshot::channel();
    let broker = async {
        this.servers.start_rabbitmq(&this.spawner).await?;
        // Nobody listens any more when the rest has failed.
        let _ = broker_up.send(());
        say("RabbitMQ is up");
        Ok::<(), DeployError>(())
    };
    let rest = async {
        let postgres = async {
            this.servers.start_postgres(&preset, &this.spawner).await?;
            arm::reload_preset(this).await?;
            snapshots::make(this).await?;
            arm::restore_databases(this).await?;
            pooler::start(this).await?;
            say(&format!("PostgreSQL is up (preset {})", preset.name()));
            Ok::<(), DeployError>(())
        };
        let redis = async {
            this.servers.start_redis(&this.spawner).await?;
            say("Redis is up");
            Ok::<(), DeployError>(())
        };
        try_join!(postgres, redis)?;
        let broker = async {
            // Without a broker the whole start fails, and this with it.
            let _ = broker_is_up.await;
        };
        let services = arm::start_services(this, &plan, broker);
        let (replicas, ()) = try_join!(services, this.servers.postgres.checkpoint())?;
        Ok(replicas)
    };
    let ((), replicas) = try_join!(broker, rest)?;
    stack.replicas = replicas;
    snapshots::remember(stack);
    arm::calibrate(stack, &mut |line| (progress.borrow_mut())(line)).await?;
    stack.registry.update(|run| run.ready = true)
}

/// Ends everything: services before the servers they use, and whatever else carries the marker, such as the broker's
/// port mapper.
pub(super) async fn down(mut stack: Stack) -> Result<(), DeployError> {
    let told = stack.registry.update(|run| run.ready = false);
    stack.suffered.leave().await;
    let mut result = arm::stop_front(&stack).await.and(arm::stop_services(&mut stack).await);
    let rest = stack.registry.live();
    for process in &rest {
        process.signal_stop();
    }
    for process in &rest {
        result = result.and(process.stop().await);
    }
    if let Ok(volume) = stack.servers.postgres.volume() {
        result = result.and(volume.unmount().await);
    }
    let run = stack.run.clone();
    let swept = tokio::task::spawn_blocking(move || sweep(&run, &[], Identity::Marker, &mut |_| ()));
    let left = swept
        .await
        .map_err(|error| DeployError::server("look for leftover processes", error))?;
    if !left.is_empty() && result.is_ok() {
        let reason = format!("could not end the processes {left:?}");
        result = Err(DeployError::start("the stack", reason, None));
    }
    // With something left the guardian is dropped without a goodbye, and tries for itself.
    if result.is_ok() {
        stack.registry.close();
        stack.guardian.done().await;
    }
    result.and(told)
}

/// The database of each service that has one, with the password of its owner.
pub(super) fn databases(
    topology: &Topology,
    descriptions: &BTreeMap<String, Description>,
    secrets: &mut Secrets,
) -> Result<BTreeMap<String, Database>, DeployError> {
    let owners = descriptions.values();
    let owners = owners.filter_map(|description| Some((description.database()?, description)));
    let databases = owners.map(|(name, description)| {
        let password = secrets.get(&format!("database {name}"))?;
        Ok((
            name.to_owned(),
            Database {
                name: name.to_owned(),
                password,
                variant: description.variant(topology),
            },
        ))
    });
    databases.collect()
}
