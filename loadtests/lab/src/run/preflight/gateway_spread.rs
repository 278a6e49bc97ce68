//! The gateways spread over all replicas of each service: by the replicas' own counters, before and after a few requests.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{Found, Scene, spread};

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let gateways = scene.stack.gateways();
    let mut said = Vec::new();
    for (service, replicas) in &scene.stack.topology().replicas {
        let replicas = usize::from(*replicas);
        if replicas < 2 || gateways.iter().any(|gateway| gateway == &format!("{service}-1")) {
            continue;
        }
        let before = counts(scene, service).await?;
        let count = spread::enough(replicas, gateways.len());
        spread::send(scene, service, count)
            .await
            .with_context(|| format!("to {service}"))?;
        let grown = spread::grown(&before, &counts(scene, service).await?);
        let found = spread::judge("the gateways", &grown);
        if !found.ok {
            return Ok(found);
        }
        said.push(found.says);
    }
    Ok(Found::good(if said.is_empty() {
        "no service has more than one replica".to_owned()
    } else {
        said.join("; ")
    }))
}

async fn counts(scene: &Scene<'_>, service: &str) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    for (index, admin) in scene.stack.admin(service).into_iter().enumerate() {
        let name = format!("{service}-{}", index + 1);
        let answer = scene.http.get(format!("http://{admin}/metrics")).send().await;
        let text = answer
            .with_context(|| format!("{name} does not answer at {admin}"))?
            .text()
            .await?;
        counts.insert(name, requests(&text));
    }
    Ok(counts)
}

/// Requests a service has answered, over all routes and statuses.
fn requests(metrics: &str) -> u64 {
    let counts = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix("http_server_request_duration_seconds_count")?;
        rest.rsplit_once(' ')?.1.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn requests_of_all_routes_are_counted_and_nothing_else() {
        let text = "\
http_server_request_duration_seconds_bucket{le=\"0.1\"} 50
http_server_request_duration_seconds_count{http_route=\"/a b\",status=\"200\"} 3
http_server_request_duration_seconds_count{http_route=\"/c\"} 4
http_server_request_duration_seconds_sum{http_route=\"/c\"} 0.5
";
        assert_eq!(super::requests(text), 7);
    }
}
