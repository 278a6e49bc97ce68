//! PgBouncer in the life of a stack: up after the databases are there, down before they are replaced.

use std::time::Duration;

use super::Stack;
use crate::error::DeployError;
use crate::links::measure;
use crate::topology::LinkName;

/// How often both ways are measured, in turns.
const HOP_PAIRS: usize = 5;

/// Starts PgBouncer where the topology asks for it.
pub(super) async fn start(stack: &Stack) -> Result<(), DeployError> {
    match stack.topology.pgbouncer {
        Some(connections) => {
            let databases = stack.databases.values();
            stack
                .servers
                .start_pgbouncer(connections, databases, &stack.spawner)
                .await
        }
        None => Ok(()),
    }
}

/// Ends PgBouncer, if it runs: it keeps sessions on databases that are about to be replaced.
pub(super) async fn stop(stack: &Stack) -> Result<(), DeployError> {
    match stack.registry.named("pgbouncer") {
        Some(pooler) => pooler.stop().await,
        None => Ok(()),
    }
}

/// What PgBouncer adds to a round trip to PostgreSQL; nothing where there is none.
pub(super) async fn hop(stack: &Stack) -> Result<Duration, DeployError> {
    if stack.topology.pgbouncer.is_none() {
        return Ok(Duration::ZERO);
    }
    let postgres = &stack.servers.postgres;
    let ways = [
        postgres.url("postgres", None),
        postgres.url("postgres", Some(stack.servers.pgbouncer.port())),
    ];
    // A busy moment makes a way longer and never shorter, so the least of several is the way itself.
    let mut least = [Duration::MAX; 2];
    for _ in 0..HOP_PAIRS {
        for (way, least) in ways.iter().zip(&mut least) {
            *least = measure(LinkName::Db, way).await?.min(*least);
        }
    }
    let [straight, through] = least;
    Ok(through.saturating_sub(straight))
}
