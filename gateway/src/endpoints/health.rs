//! Asks every replica whether it is ready, so that one which is not gets no requests within a second, and gets them again
//! when it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis::service::Drain;
use futures::future::join_all;
use http::{StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::MissedTickBehavior;

use super::{Endpoints, Replica, Rotation};

/// With the longest answer, and the quarter of a second for which a service caches its own, less than a second.
const PERIOD: Duration = Duration::from_millis(200);
const LONGEST_ANSWER: Duration = Duration::from_millis(400);
/// Between two rounds the connection rests.
const IDLE_CONNECTION: Duration = Duration::from_secs(15);

type Probe = Client<HttpConnector, Empty<Bytes>>;

/// Runs until the service drains.
pub(crate) async fn check(endpoints: Arc<Endpoints>, drain: Drain) -> anyhow::Result<()> {
    let mut connector = HttpConnector::new();
    // Without a bound of its own on connecting: a replica that is slow to answer is told from one that refuses.
    connector.set_nodelay(true);
    let probe: Probe = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_CONNECTION)
        .pool_timer(TokioTimer::new())
        .build(connector);
    let mut round = tokio::time::interval(PERIOD);
    round.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = round.tick() => {}
            () = drain.cancelled() => return Ok(()),
        }
        // Requests to this edge may still be in flight while it drains; the replicas they go to are watched until then.
        join_all(endpoints.all().map(|rotation| check_all(&probe, rotation))).await;
    }
}

async fn check_all(probe: &Probe, rotation: &Rotation) {
    let replicas = rotation.replicas();
    let checks = replicas
        .iter()
        .filter_map(|replica| Some((replica, replica.readiness()?)));
    join_all(checks.map(|(replica, uri)| check_one(probe, rotation.service(), replica, uri.clone()))).await;
}

async fn check_one(probe: &Probe, service: &'static str, replica: &Replica, readiness: Uri) {
    let answer = tokio::time::timeout(LONGEST_ANSWER, async {
        let response = probe.get(readiness).await.map_err(|error| error.to_string())?;
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        response
            .into_body()
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(status)
    });
    let unready = match answer.await {
        Ok(Ok(StatusCode::OK)) => None,
        Ok(Ok(status)) => Some(format!("/readyz answers {status}")),
        Ok(Err(error)) => Some(error),
        Err(_) => {
            // It may be stopped, or merely busy with the very requests it would be spared: others come first, and if
            // there is no other it is better than nothing.
            replica.pass_over(Instant::now());
            return;
        }
    };
    if !replica.set_ready(unready.is_none()) {
        return;
    }
    let replica = replica.address();
    match unready {
        None => tracing::info!(service, %replica, "the replica is ready again"),
        Some(cause) => tracing::warn!(service, %replica, cause, "the replica is not ready and gets no requests"),
    }
}
