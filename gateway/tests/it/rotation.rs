//! Round robin, replicas that come and go, and the endpoints file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chassis::config::Common;
use chassis::service::StartError;
use reqwest::Method;

use crate::support::issuer::Issuer;
use crate::support::upstream::Counter;
use crate::support::{Edge, EndpointsFile, assert_problem, dead, eventually, try_start};

#[tokio::test]
async fn requests_spread_evenly_over_the_replicas() {
    let replicas = [Counter::start().await, Counter::start().await, Counter::start().await];
    let edge = Edge::before(&replicas.each_ref().map(|replica| replica.addr)).await;
    for _ in 0..30 {
        assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
    }
    assert_eq!(replicas.each_ref().map(Counter::seen), [10, 10, 10]);
}

#[tokio::test]
async fn concurrent_requests_spread_evenly_too() {
    let replicas = [Counter::start().await, Counter::start().await, Counter::start().await];
    let edge = Edge::before(&replicas.each_ref().map(|replica| replica.addr)).await;
    let requests = (0..60).map(|_| edge.get("/api/v1/tours"));
    for response in futures::future::join_all(requests).await {
        assert_eq!(response.status(), 200);
    }
    assert_eq!(replicas.each_ref().map(Counter::seen), [20, 20, 20]);
}

#[tokio::test]
async fn a_dead_replica_costs_no_request_not_even_one_with_a_body() {
    let alive = Counter::start().await;
    let edge = Edge::before(&[dead().await, alive.addr, dead().await]).await;
    for _ in 0..20 {
        let response = edge
            .request(Method::POST, "/api/v1/tours")
            .body("12345")
            .send()
            .await
            .expect("answers");
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.expect("is text"), "5", "the whole body arrived");
    }
    assert_eq!(alive.seen(), 20);
}

#[tokio::test]
async fn without_a_live_replica_the_answer_is_503_and_says_when_to_try_again() {
    for replicas in [vec![], vec![dead().await, dead().await]] {
        let edge = Edge::before(&replicas).await;
        let response = edge
            .request(Method::POST, "/api/v1/tours")
            .body("{}")
            .send()
            .await
            .expect("answers");
        assert_eq!(response.headers()["retry-after"], "1");
        assert_problem(response, 503, "no-replica").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_come_and_go_under_load_without_a_failed_request() {
    let replicas = [Counter::start().await, Counter::start().await, Counter::start().await];
    let [one, two, three] = replicas.each_ref().map(|replica| replica.addr);
    let edge = Arc::new(Edge::before(&[one]).await);
    let stop = Arc::new(AtomicBool::new(false));
    let users: Vec<_> = (0..4)
        .map(|_| {
            let (edge, stop) = (edge.clone(), stop.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let response = edge
                        .request(Method::POST, "/api/v1/tours")
                        .body("12345")
                        .send()
                        .await
                        .expect("answers");
                    assert_eq!(response.status(), 200);
                }
            })
        })
        .collect();

    for (set, added) in [
        (vec![one, two], 1),
        (vec![two, three], 2),
        (vec![one], 0),
        (vec![three, one], 2),
    ] {
        let before = replicas[added].seen();
        edge.endpoints.replace(&set, &[]);
        eventually("the added replica gets requests", async || {
            replicas[added].seen() > before
        })
        .await;
    }
    edge.endpoints.replace(&[two], &[]);
    eventually("the others get no more requests", async || {
        let before = replicas[0].seen() + replicas[2].seen();
        tokio::time::sleep(Duration::from_millis(50)).await;
        replicas[0].seen() + replicas[2].seen() == before
    })
    .await;
    stop.store(true, Ordering::SeqCst);
    for user in users {
        user.await.expect("every request succeeded");
    }
}

#[tokio::test]
async fn a_malformed_or_missing_file_leaves_the_last_good_one_in_force() {
    let (one, two) = (Counter::start().await, Counter::start().await);
    let edge = Edge::before(&[one.addr]).await;
    edge.endpoints.replace_text("{\"services\":{\"tour-data\":[");
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
    }
    std::fs::remove_file(edge.endpoints.path()).expect("removes");
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
    }
    edge.endpoints.replace(&[two.addr], &[]);
    eventually("the next good file is taken", async || {
        edge.get("/api/v1/tours").await;
        two.seen() > 0
    })
    .await;
}

#[tokio::test]
async fn a_missing_or_malformed_file_at_start_is_wrong_configuration() {
    let issuer = Issuer::start().await;
    let malformed = EndpointsFile::new(&[], &[]);
    malformed.replace_text("[]");
    for path in ["/nowhere/endpoints.json".to_owned(), malformed.path()] {
        let error = try_start(Common::default(), &path, &issuer, &[])
            .await
            .err()
            .expect("refuses");
        assert!(matches!(error, StartError::Config(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("GATEWAY_ENDPOINTS_FILE") && text.contains(&path),
            "{text}"
        );
    }
}
