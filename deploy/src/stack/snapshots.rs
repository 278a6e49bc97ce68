//! The snapshots that the databases of a stack are restored from.

use super::Stack;
use crate::error::DeployError;
use crate::postgres::Database;
use crate::services::Description;

/// Makes the snapshot of every database that is not among the remembered ones: with all migrations of its service, and
/// with what the service's program is told.
pub(super) async fn make(stack: &Stack) -> Result<(), DeployError> {
    for description in stack.descriptions.values() {
        let Some(database) = description.database().and_then(|name| stack.databases.get(name)) else {
            continue;
        };
        if stack.snapshots.contains(&database.snapshot()) {
            continue;
        }
        let postgres = &stack.servers.postgres;
        // What a program is told to do it can do once: one of an earlier run is of no use.
        let kept = database.variant.is_none() && {
            postgres.prepare_snapshot(database).await?;
            migrate(stack, description, database).await.is_ok()
        };
        if !kept {
            // A migration that was edited does not fit a snapshot made with its old text. A snapshot holds nothing that
            // migrations and programs do not make, so a new one is as good.
            postgres.drop_snapshot(database).await?;
            postgres.prepare_snapshot(database).await?;
            migrate(stack, description, database).await?;
        }
    }
    Ok(())
}

/// The snapshots that the topology needs are there from now on.
pub(super) fn remember(stack: &mut Stack) {
    stack.snapshots.extend(stack.databases.values().map(Database::snapshot));
}

async fn migrate(stack: &Stack, description: &Description, database: &Database) -> Result<(), DeployError> {
    let (postgres, wiring, topology) = (&stack.servers.postgres, stack.wiring(), &stack.topology);
    let url = postgres.url_as(&database.name, &database.password, &database.snapshot(), None);
    description.migrate(&url, topology, &wiring).await?;
    description.act(&url, topology, &wiring).await
}
