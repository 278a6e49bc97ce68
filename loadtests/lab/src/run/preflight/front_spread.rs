//! HAProxy spreads over all gateways: by its own counters, before and after a few requests.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{Found, Scene, spread};

/// The service that answers the requests without a token, and uncounted by a rate limit.
const ANSWERED_BY: &str = "user";

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let gateways = scene.stack.gateways();
    anyhow::ensure!(!gateways.is_empty(), "there is no gateway behind HAProxy");
    let before = counts(scene, &gateways).await?;
    let count = spread::enough(gateways.len(), 1);
    spread::send(scene, ANSWERED_BY, count)
        .await
        .context("through HAProxy")?;
    let after = counts(scene, &gateways).await?;
    Ok(spread::judge("HAProxy", &spread::grown(&before, &after)))
}

/// A gateway that HAProxy does not know has got nothing.
async fn counts(scene: &Scene<'_>, gateways: &[String]) -> anyhow::Result<BTreeMap<String, u64>> {
    let known = scene.stack.front_requests().await?;
    let counts = gateways
        .iter()
        .map(|name| (name.clone(), known.get(name).copied().unwrap_or_default()));
    Ok(counts.collect())
}
