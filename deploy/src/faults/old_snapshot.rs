//! An old snapshot: a session that has read once at REPEATABLE READ and keeps its transaction open, as a report or a backup
//! does, or a client that has forgotten it.
//!
//! PostgreSQL must keep every row version that this snapshot could see, and so every later one of the same row. Each update
//! of a hot row then walks past all of its versions since, and they become more with every update. When the session ends,
//! the next visit of a page removes them.

use super::{Crashes, Heal, On, Spec, Step};
use crate::postgres::OldSnapshot;
use crate::process::Process;
use crate::stack::Ground;

pub(super) static SPEC: Spec = Spec {
    name: "old-snapshot",
    summary: "keeps a snapshot of every service's database open, so that no old row version can be removed",
    crashes: Crashes::Not,
    on: On::Servers(&["postgres"], inflict),
};

fn inflict<'a>(ground: &'a Ground, _: &'a Process) -> Step<'a, Heal> {
    Box::pin(async move {
        let mut snapshots = Vec::new();
        for database in ground.databases() {
            snapshots.push(OldSnapshot::open(&ground.servers().postgres, database).await?);
        }
        let heal: Heal = Box::new(move |_| {
            Box::pin(async move {
                for snapshot in snapshots {
                    snapshot.close().await?;
                }
                Ok(())
            })
        });
        Ok(heal)
    })
}
