//! The databases that the load writes to are what their snapshots are, table by table.

use super::{Found, Scene};
use crate::facts::Facts;

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let facts = Facts::of(scene.stack);
    let databases = facts.databases();
    let mut wrong = Vec::new();
    for database in &databases {
        let differing = scene.stack.differs_from_snapshot(database).await?;
        wrong.extend(differing.iter().map(|table| format!("{database}: {table}")));
    }
    Ok(if wrong.is_empty() {
        let names: Vec<&str> = databases.into_iter().collect();
        Found::good(format!("{} as in the snapshot", names.join(", ")))
    } else {
        Found::wrong(format!("not as in the snapshot: {}", wrong.join("; ")))
    })
}
