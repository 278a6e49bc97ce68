//! The databases of a stack: made once as a snapshot, copied for every arm.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

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

/// Makes every database a fresh copy of its snapshot, but for how full its pages may be; all at once, since each waits for
/// the disk most of the time. The copies are yet to be written out by a checkpoint, for which nobody has to wait who does
/// not measure.
pub(super) async fn restore(stack: &Stack) -> Result<(), DeployError> {
    let mut restoring = JoinSet::new();
    for database in stack.databases.values() {
        let (postgres, database) = (stack.servers.postgres.clone(), database.clone());
        let fillfactor = stack.topology.fillfactor.clone();
        restoring.spawn(async move {
            postgres.restore(&database).await?;
            postgres.fill(&database, &fillfactor).await
        });
    }
    let mut filled = BTreeSet::new();
    while let Some(outcome) = restoring.join_next().await {
        filled.extend(outcome.map_err(|panic| DeployError::server("restore the databases", panic))??);
    }
    match stack.topology.fillfactor.keys().find(|table| !filled.contains(*table)) {
        Some(table) => Err(DeployError::Usage(format!(
            "fillfactor: no database of this stack has a table `{table}`"
        ))),
        None => Ok(()),
    }
}
