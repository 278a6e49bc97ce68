//! What a fault may touch: a view of the stack that outlives the borrow of it, so that a fault heals by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Stack;
use super::servers::Servers;
use crate::error::DeployError;
use crate::faults::{Fault, On, Spec};
use crate::links::Link;
use crate::process::{Kind, Process, Registry, Spawner};
use crate::services::alive;
use crate::topology::LinkName;

/// The stack as a fault sees it.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// What can be aimed at → names of its processes.
    parts: BTreeMap<String, Vec<String>>,
    links: BTreeMap<LinkName, Arc<Link>>,
    registry: Arc<Registry>,
    spawner: Spawner,
    servers: Servers,
    /// Names of the services' databases; that of every cluster where no service has one.
    databases: Vec<String>,
    http: reqwest::Client,
    /// The stack goes down: what was ended stays ended.
    leaving: Arc<AtomicBool>,
}

/// What a fault was aimed at, found in the running stack.
#[derive(Debug)]
pub(super) enum Hit {
    /// One process, or all replicas of a service.
    Processes(Vec<Process>),
    Link(Arc<Link>),
}

impl Ground {
    pub(super) fn of(stack: &Stack, leaving: Arc<AtomicBool>) -> Self {
        let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let servers = ["postgres", "redis", "rabbitmq"];
        let front = stack.descriptions.values().any(|service| service.balances());
        for server in servers.into_iter().chain(front.then_some("haproxy")) {
            parts.insert(server.to_owned(), vec![server.to_owned()]);
        }
        for (service, replicas) in &stack.replicas {
            let names: Vec<String> = replicas.iter().map(|replica| replica.name(service)).collect();
            for name in &names {
                parts.insert(name.clone(), vec![name.clone()]);
            }
            parts.insert(service.clone(), names);
        }
        let mut databases: Vec<String> = stack.databases.keys().cloned().collect();
        if databases.is_empty() {
            databases.push("postgres".to_owned());
        }
        Self {
            parts,
            databases,
            links: stack.links.clone(),
            registry: Arc::clone(&stack.registry),
            spawner: stack.spawner.clone(),
            servers: stack.servers.clone(),
            http: stack.http.clone(),
            leaving,
        }
    }

    /// What the fault is aimed at.
    ///
    /// # Errors
    /// There is no such part, or the kind cannot be aimed at it: wrong usage, with the parts there are. It is not
    /// running: with what to do.
    pub(super) fn aim(&self, spec: &Spec, fault: &Fault) -> Result<Hit, DeployError> {
        let target = fault.target.as_str();
        match spec.on {
            On::Link(_) => self.link(spec, target).map(Hit::Link),
            On::Servers(servers, _) if !servers.contains(&target) => Err(unknown(spec, target, servers)),
            On::Processes(_) | On::Servers(..) => self.processes(spec, target).map(Hit::Processes),
        }
    }

    fn link(&self, spec: &Spec, target: &str) -> Result<Arc<Link>, DeployError> {
        let known = LinkName::ALL.into_iter().find(|link| link.as_str() == target);
        let Some(name) = known else {
            return Err(unknown(spec, target, &LinkName::ALL.map(LinkName::as_str)));
        };
        self.links.get(&name).cloned().ok_or_else(|| {
            let reason = format!(
                "is a direct connection in this stack and cannot be {}; bring the stack up with a distance on it (--rtt {name}=1ms)",
                spec.name
            );
            DeployError::start(format!("the link {name}"), reason, None)
        })
    }

    fn processes(&self, spec: &Spec, target: &str) -> Result<Vec<Process>, DeployError> {
        let Some(names) = self.parts.get(target) else {
            let known: Vec<&str> = self.parts.keys().map(String::as_str).collect();
            return Err(unknown(spec, target, &known));
        };
        let found = names.iter().map(|name| {
            self.registry.named(name).ok_or_else(|| {
                let reason = "is not running: wait until it is back, or bring the stack down and up again".to_owned();
                DeployError::start(name, reason, None)
            })
        });
        found.collect()
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    pub(crate) fn databases(&self) -> &[String] {
        &self.databases
    }

    /// Starts processes that have ended as they were started before, and waits until they answer.
    pub(crate) async fn start_again(&self, ended: &[Process]) -> Result<(), DeployError> {
        let mut started = Vec::with_capacity(ended.len());
        for process in ended {
            if self.leaving.load(Ordering::Relaxed) {
                return Ok(());
            }
            started.push(self.spawner.spawn(process.launch())?);
        }
        self.answers(&started).await
    }

    /// The same for one that may have survived.
    pub(crate) async fn start_again_if_ended(&self, process: &Process) -> Result<(), DeployError> {
        if process.exited().is_some() {
            return self.start_again(std::slice::from_ref(process)).await;
        }
        process.end_is_unexpected();
        self.answers(std::slice::from_ref(process)).await
    }

    /// Waits until processes answer: a server its own protocol, a service that it lives. Whether it is *ready* is up to
    /// what it depends on, which may be away for a reason of its own.
    pub(crate) async fn answers(&self, processes: &[Process]) -> Result<(), DeployError> {
        if self.leaving.load(Ordering::Relaxed) {
            return Ok(());
        }
        for process in processes {
            match process.info().kind {
                Kind::Service => alive(process, &self.http).await?,
                Kind::Server | Kind::Tool => self.servers.answers(process).await?,
            }
        }
        Ok(())
    }
}

fn unknown(spec: &Spec, target: &str, known: &[&str]) -> DeployError {
    DeployError::Usage(format!(
        "`{}` cannot be aimed at `{target}`; it can be aimed at {}",
        spec.name,
        known.join(", ")
    ))
}
