//! All replicas of a service run under one configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

use super::{Found, Scene};

/// The answer of `/config`.
#[derive(Debug, Clone, Deserialize)]
struct Config {
    digest: String,
    config: BTreeMap<String, Value>,
}

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let mut wrong = Vec::new();
    let mut replicas = 0;
    for service in scene.stack.topology().replicas.keys() {
        let mut configs = Vec::new();
        for (index, admin) in scene.stack.admin(service).into_iter().enumerate() {
            let name = format!("{service}-{}", index + 1);
            let config = ask(&scene.http, admin).await;
            configs.push((name.clone(), config.with_context(|| format!("{name} at {admin}"))?));
        }
        replicas += configs.len();
        wrong.extend(differing(&configs));
    }
    Ok(if wrong.is_empty() {
        Found::good(format!("{replicas} replicas, one configuration for each service"))
    } else {
        Found::wrong(wrong.join("; "))
    })
}

async fn ask(http: &reqwest::Client, admin: SocketAddr) -> anyhow::Result<Config> {
    let request = http.get(format!("http://{admin}/config"));
    Ok(request.send().await?.error_for_status()?.json().await?)
}

/// The replicas that differ from the first one, and in what.
fn differing(configs: &[(String, Config)]) -> Vec<String> {
    let Some(((first, of_first), others)) = configs.split_first() else {
        return Vec::new();
    };
    let others = others.iter().filter(|(_, config)| config.digest != of_first.digest);
    others
        .map(|(name, config)| {
            // Addresses and the like differ rightly and are not in the digest; the variables here may be among them, but what
            // was meant is too.
            let fields = config.config.iter().filter_map(|(field, value)| {
                let other = of_first.config.get(field).filter(|other| *other != value)?;
                (!LOCAL.contains(&field.as_str())).then(|| format!("{field} = {value} instead of {other}"))
            });
            let fields: Vec<String> = fields.collect();
            format!("{name} is configured differently from {first}: {}", fields.join(", "))
        })
        .collect()
}

/// What tells replicas apart and is no difference.
const LOCAL: [&str; 3] = ["instance_id", "http_addr", "admin_addr"];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(digest: &str, limit: u32) -> Config {
        let config = serde_json::json!({"digest": digest, "config": {"instance_id": digest, "rate_limit": limit}});
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn a_replica_that_is_configured_differently_is_named_with_what_differs() {
        let same = [("a-1".to_owned(), config("x", 1)), ("a-2".to_owned(), config("x", 1))];
        assert!(differing(&same).is_empty());
        let other = [
            ("a-1".to_owned(), config("x", 100_000)),
            ("a-2".to_owned(), config("y", 60)),
        ];
        assert_eq!(
            differing(&other),
            ["a-2 is configured differently from a-1: rate_limit = 60 instead of 100000"]
        );
        assert!(differing(&[]).is_empty());
    }
}
