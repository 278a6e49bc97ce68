//! Replicas that say they are not ready, and those that do not say anything.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use reqwest::{Method, StatusCode};
use tokio::net::TcpListener;

use crate::support::upstream::{Counter, serve};
use crate::support::{Edge, EndpointsFile, assert_problem, dead, eventually};

/// A replica whose readiness the test decides.
struct Replica {
    counter: Counter,
    admin: SocketAddr,
    ready: Arc<AtomicBool>,
}

impl Replica {
    async fn start() -> Self {
        let ready = Arc::new(AtomicBool::new(true));
        let says = Arc::clone(&ready);
        let readyz = get(async move || match says.load(Ordering::SeqCst) {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        });
        Self {
            counter: Counter::start().await,
            admin: serve(Router::new().route("/readyz", readyz)).await,
            ready,
        }
    }

    fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }

    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.counter.addr, self.admin)
    }
}

/// Until a round over both replicas reaches only the second one.
async fn reaches_only_the_second(edge: &Edge, replicas: &[Replica; 2]) {
    eventually("the first replica gets nothing", async || {
        let before = replicas[0].counter.seen();
        for _ in 0..4 {
            assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
        }
        replicas[0].counter.seen() == before
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_is_not_ready_is_taken_out_and_back_in_without_a_failed_request() {
    let replicas = [Replica::start().await, Replica::start().await];
    let edge = Edge::start(EndpointsFile::with_admin(&replicas.each_ref().map(Replica::addresses))).await;
    for _ in 0..4 {
        assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
    }
    assert_eq!(replicas.each_ref().map(|replica| replica.counter.seen()), [2, 2]);

    replicas[0].set_ready(false);
    let since = Instant::now();
    reaches_only_the_second(&edge, &replicas).await;
    eprintln!("taken out within {:?}", since.elapsed());

    let metrics = edge.admin("/metrics").await.text().await.expect("is text");
    assert!(metrics.contains("gateway_replicas"), "{metrics}");

    replicas[0].set_ready(true);
    let since = Instant::now();
    let before = replicas[0].counter.seen();
    eventually("the first replica gets requests again", async || {
        assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
        replicas[0].counter.seen() > before
    })
    .await;
    eprintln!("taken back in within {:?}", since.elapsed());
}

#[tokio::test]
async fn without_a_ready_replica_the_answer_is_503_and_names_the_service_and_the_edge_stays_ready() {
    let replica = Replica::start().await;
    replica.set_ready(false);
    let edge = Edge::start(EndpointsFile::with_admin(&[replica.addresses()])).await;
    eventually("it is taken out", async || {
        edge.get("/api/v1/tours").await.status() == 503
    })
    .await;
    let before = replica.counter.seen();
    let refused = edge.get("/api/v1/tours").await;
    assert_eq!(refused.headers()["retry-after"], "1");
    let text = edge.get("/api/v1/tours").await.text().await.expect("is text");
    assert!(text.contains("tour-data"), "{text}");
    assert_problem(refused, 503, "no-replica").await;
    assert_eq!(replica.counter.seen(), before, "it is left alone");
    let report = edge.admin("/readyz").await;
    assert_eq!(report.status(), 200);
    let report = report.text().await.expect("is text");
    assert!(report.contains("1 of 1 replicas not ready"), "{report}");

    replica.set_ready(true);
    eventually("it is taken back in", async || {
        edge.get("/api/v1/tours").await.status() == 200
    })
    .await;
}

#[tokio::test]
async fn a_replica_whose_admin_port_is_gone_is_taken_out_too() {
    let replicas = [Replica::start().await, Replica::start().await];
    let [(first, _), second] = replicas.each_ref().map(Replica::addresses);
    let edge = Edge::start(EndpointsFile::with_admin(&[(first, dead().await), second])).await;
    reaches_only_the_second(&edge, &replicas).await;
}

#[tokio::test]
async fn a_replica_that_says_nothing_comes_last_and_is_better_than_none() {
    // Takes connections and never answers, as a stopped process does.
    let mute = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let mute = mute.local_addr().map(|addr| (mute, addr)).expect("has an address");
    let replicas = [Replica::start().await, Replica::start().await];
    let [(first, _), second] = replicas.each_ref().map(Replica::addresses);
    let edge = Edge::start(EndpointsFile::with_admin(&[(first, mute.1), second])).await;
    reaches_only_the_second(&edge, &replicas).await;

    replicas[1].set_ready(false);
    let before = replicas[0].counter.seen();
    eventually("the first replica is all there is", async || {
        let request = edge
            .request(Method::GET, "/api/v1/tours")
            .timeout(Duration::from_secs(20));
        assert_eq!(request.send().await.expect("answers").status(), 200);
        replicas[0].counter.seen() >= before + 4
    })
    .await;
}
