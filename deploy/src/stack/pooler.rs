//! PgBouncer in the life of a stack: up after the databases are there, down before they are replaced.

use super::Stack;
use crate::error::DeployError;

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
