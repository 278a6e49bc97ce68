//! Before an arm is measured: is it what it says it is?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use serde::Deserialize;

use crate::run::drain;

const ANSWER_WITHIN: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Config {
    digest: String,
}

/// All replicas of a service run under the same configuration, and no queue holds messages of an earlier load.
///
/// # Errors
/// The first thing that is not so; the arm must then not be measured.
pub(super) async fn check(stack: &Stack) -> anyhow::Result<()> {
    let http = reqwest::Client::builder().timeout(ANSWER_WITHIN).build()?;
    for (service, replicas) in &stack.topology().replicas {
        let addresses = stack.admin(service);
        anyhow::ensure!(
            addresses.len() == usize::from(*replicas),
            "{service} has {} replicas, the arm asks for {replicas}",
            addresses.len()
        );
        let mut digests: BTreeMap<String, SocketAddr> = BTreeMap::new();
        for address in addresses {
            digests.insert(
                digest(&http, address)
                    .await
                    .with_context(|| format!("{service} at {address}"))?,
                address,
            );
        }
        anyhow::ensure!(
            digests.len() == 1,
            "replicas of {service} run under different configurations; compare /config of {}",
            digests
                .values()
                .map(SocketAddr::to_string)
                .collect::<Vec<_>>()
                .join(" and ")
        );
    }
    drain::expect_empty(stack).await
}

async fn digest(http: &reqwest::Client, admin: SocketAddr) -> anyhow::Result<String> {
    let answer = http
        .get(format!("http://{admin}/config"))
        .send()
        .await?
        .error_for_status()?;
    let config: Config = answer.json().await?;
    Ok(config.digest)
}
