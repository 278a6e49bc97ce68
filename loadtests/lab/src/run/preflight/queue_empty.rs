//! No queue holds messages of an earlier load.

use super::{Found, Scene};
use crate::facts::Facts;
use crate::run::drain;

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    drain::expect_empty(scene.stack).await?;
    let queues = Facts::of(scene.stack).queues();
    Ok(Found::good(format!("no message in {}", queues.join(", "))))
}
