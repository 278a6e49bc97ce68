//! Use of each replica's database pool, from its `/metrics`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use deploy::Stack;

use super::Probe;
use crate::events::{PoolSample, PoolUse, Sample};
use crate::http;

/// The label that tells PostgreSQL's pool from others.
const SYSTEM: &str = r#"db_system_name="postgresql""#;

pub(super) struct Pool {
    http: reqwest::Client,
    /// Replica → admin address.
    replicas: Vec<(String, SocketAddr)>,
}

impl Pool {
    pub(super) fn new(stack: &Stack) -> anyhow::Result<Self> {
        let services = stack.topology().replicas.keys();
        let replicas = services.flat_map(|service| {
            let addresses = stack.admin(service).into_iter().enumerate();
            addresses.map(move |(index, address)| (format!("{service}-{}", index + 1), address))
        });
        Ok(Self {
            http: http::client(Duration::from_secs(2))?,
            replicas: replicas.collect(),
        })
    }
}

#[async_trait]
impl Probe for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut sample = PoolSample::default();
        for (replica, address) in &self.replicas {
            let answer = self.http.get(format!("http://{address}/metrics")).send().await;
            let text = answer
                .with_context(|| format!("{replica} does not answer at {address}"))?
                .text()
                .await?;
            if let Some(pool) = pool_use(&text) {
                sample.replicas.insert(replica.clone(), pool);
            }
        }
        Ok(Sample::Pool(sample))
    }
}

/// Reads the pool's figures from Prometheus text; `None` for a service without a database.
fn pool_use(text: &str) -> Option<PoolUse> {
    let states = values(text, "db_client_connection_count", "db_client_connection_state");
    let single = |name| values(text, name, "").values().sum();
    Some(PoolUse {
        used: states.get("used").copied()?,
        idle: states.get("idle").copied().unwrap_or_default(),
        max: single("db_client_connection_max"),
        pending: single("db_client_connection_pending_requests"),
    })
}

/// Values of one metric of PostgreSQL's pool by the value of one label; Redis has a pool of the same metrics.
fn values<'t>(text: &'t str, metric: &str, label: &str) -> BTreeMap<&'t str, u32> {
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(metric) else {
            continue;
        };
        if !rest.starts_with(['{', ' ']) {
            continue;
        }
        let Some((labels, value)) = rest.rsplit_once(' ') else {
            continue;
        };
        if !labels.contains(SYSTEM) {
            continue;
        }
        let Ok(value) = value.parse::<f64>() else { continue };
        let named = labels
            .split([',', '{', '}'])
            .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == label));
        let key = named.map_or("", |(_, value)| value.trim_matches('"'));
        *values.entry(key).or_default() += value as u32;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_idle_most_and_waiting_are_read_from_prometheus_text() {
        let text = r#"
# TYPE db_client_connection_count gauge
db_client_connection_count{db_client_connection_state="used",db_system_name="postgresql"} 4
db_client_connection_count{db_client_connection_state="idle",db_system_name="postgresql"} 1
db_client_connection_count{db_client_connection_state="used",db_system_name="redis"} 7
db_client_connection_max{db_system_name="postgresql"} 5
db_client_connection_max{db_system_name="redis"} 8
db_client_connection_pending_requests{db_system_name="postgresql"} 6
db_client_connection_max_something{db_system_name="postgresql"} 99
"#;
        assert_eq!(
            pool_use(text),
            Some(PoolUse {
                used: 4,
                idle: 1,
                max: 5,
                pending: 6
            })
        );
        assert_eq!(pool_use("http_server_request_duration_seconds_count 3\n"), None);
    }
}
