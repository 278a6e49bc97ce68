//! More or fewer replicas of one service while it serves.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Stack;
use super::arm::gateway;
use crate::error::DeployError;
use crate::services::{Replica, write_endpoints};
use crate::topology::check_replicas;

/// A gateway looks at the endpoints file every 250 ms; twice that and it has, even on a busy machine.
const ENDPOINTS_SEEN: Duration = Duration::from_millis(600);

pub(super) async fn scale(stack: &mut Stack, service: &str, replicas: u16) -> Result<(), DeployError> {
    let Some(running) = stack.replicas.get(service).map(Vec::len) else {
        let known: Vec<&str> = stack.replicas.keys().map(String::as_str).collect();
        let known = known.join(", ");
        return Err(DeployError::Usage(format!(
            "the stack has no service `{service}`; it has {known}"
        )));
    };
    check_replicas(service, replicas)?;
    if stack.topology.front_single && stack.descriptions[service].balances() {
        return Err(DeployError::Usage(
            "HAProxy has a line for one gateway alone in this stack, on purpose; its gateways cannot be scaled"
                .to_owned(),
        ));
    }
    // A fault would start a replica again that has been taken away.
    let replica = format!("{service}-");
    stack.suffered.end_of(|part| part.starts_with(&replica)).await;
    if usize::from(replicas) < running {
        shrink(stack, service, replicas).await?;
    } else {
        grow(stack, service, replicas).await?;
    }
    stack.topology.replicas.insert(service.to_owned(), replicas);
    let topology = stack.topology.clone();
    stack.registry.update(|run| run.topology = topology)
}

/// New replicas get requests only when they are ready.
async fn grow(stack: &mut Stack, service: &str, replicas: u16) -> Result<(), DeployError> {
    let first = stack.replicas[service].last().map_or(1, |replica| replica.number + 1);
    if let Some(cores) = stack.topology.cpus.get(service) {
        for number in first..=replicas {
            stack
                .limits
                .add(&format!("{service}-{number}"), *cores, stack.dir.path());
        }
    }
    let wiring = stack.wiring();
    let mut added: Vec<Replica> = Vec::new();
    for number in first..=replicas {
        let ports = stack.ports.replica(service, number)?;
        let description = &stack.descriptions[service];
        let (topology, cwd) = (&stack.topology, stack.dir.path());
        added.push(description.start(number, ports, topology, &wiring, cwd, &stack.spawner)?);
    }
    let ready = async {
        for replica in &added {
            replica.ready(&stack.http).await?;
        }
        Ok(())
    };
    if let Err(error) = ready.await {
        for replica in &added {
            // The reason why it did not come up is what the reader needs.
            let _ = replica.process.stop().await;
        }
        return Err(error);
    }
    if stack.descriptions[service].balances() {
        for replica in &added {
            stack
                .servers
                .haproxy
                .add(gateway(replica.number, replica.ports))
                .await?;
        }
        if let Some(front) = stack.registry.named("haproxy") {
            let replicas = stack.replicas[service].iter().chain(&added);
            let gateways: Vec<_> = replicas.map(|replica| gateway(replica.number, replica.ports)).collect();
            stack.servers.balanced(&front, &gateways).await?;
        }
        stack.replicas.entry(service.to_owned()).or_default().extend(added);
        return remember(stack, service);
    }
    stack.replicas.entry(service.to_owned()).or_default().extend(added);
    announce(stack).await
}

/// Replicas stop getting requests before they are told to drain.
async fn shrink(stack: &mut Stack, service: &str, replicas: u16) -> Result<(), DeployError> {
    let all = stack.replicas.entry(service.to_owned()).or_default();
    let leaving = all.split_off(usize::from(replicas));
    if stack.descriptions[service].balances() {
        for replica in &leaving {
            stack
                .servers
                .haproxy
                .remove(gateway(replica.number, replica.ports))
                .await?;
        }
        remember(stack, service)?;
    } else {
        announce(stack).await?;
    }
    // By name: a fault may have ended the process that was started first, and started another.
    let running = leaving
        .iter()
        .filter_map(|replica| stack.registry.named(&replica.name(service)));
    let running: Vec<_> = running.collect();
    for process in &running {
        process.signal_stop();
    }
    for process in &running {
        process.stop().await?;
    }
    Ok(())
}

/// Writes down the gateways for HAProxy's next start.
fn remember(stack: &Stack, service: &str) -> Result<(), DeployError> {
    let gateways = stack.replicas[service]
        .iter()
        .map(|replica| gateway(replica.number, replica.ports));
    stack.servers.haproxy.write(&gateways.collect::<Vec<_>>())
}

/// Tells the gateways where the replicas are, and waits until they have seen it.
async fn announce(stack: &Stack) -> Result<(), DeployError> {
    let balanced = stack
        .replicas
        .iter()
        .filter(|(service, _)| !stack.descriptions[*service].balances());
    let ports = |replicas: &Vec<Replica>| replicas.iter().map(|replica| replica.ports).collect::<Vec<_>>();
    let endpoints: BTreeMap<_, _> = balanced
        .map(|(service, replicas)| (service.clone(), ports(replicas)))
        .collect();
    write_endpoints(&stack.wiring().endpoints_file, &endpoints)?;
    tokio::time::sleep(ENDPOINTS_SEEN).await;
    Ok(())
}
