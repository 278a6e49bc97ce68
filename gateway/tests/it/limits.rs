//! Sizes and times.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::Method;
use tokio::net::TcpListener;

use crate::support::upstream::Counter;
use crate::support::{Edge, EndpointsFile, assert_problem, upstream};

const LIMIT: usize = 100_000;

async fn limited() -> (Counter, Edge) {
    let counter = Counter::start().await;
    let endpoints = EndpointsFile::new(&[counter.addr], &[]);
    let edge = Edge::start_with(endpoints, &[("GATEWAY_BODY_LIMIT", "100000")]).await;
    (counter, edge)
}

/// Without a content length.
fn chunked(total: usize) -> reqwest::Body {
    let chunks = (0..total / 1000).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 1000])));
    reqwest::Body::wrap_stream(stream::iter(chunks))
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_passes() {
    let (_counter, edge) = limited().await;
    for body in [reqwest::Body::from(vec![b'x'; LIMIT]), chunked(LIMIT)] {
        let response = edge
            .request(Method::POST, "/api/v1/tours")
            .body(body)
            .send()
            .await
            .expect("answers");
        assert_eq!(response.text().await.expect("is text"), LIMIT.to_string());
    }
}

#[tokio::test]
async fn an_announced_body_over_the_limit_is_refused_before_a_service_sees_it() {
    let (counter, edge) = limited().await;
    let body = vec![b'x'; LIMIT + 1];
    let response = edge
        .request(Method::POST, "/api/v1/tours")
        .body(body)
        .send()
        .await
        .expect("answers");
    assert_problem(response, 413, "body-too-large").await;
    assert_eq!(counter.seen(), 0);
}

#[tokio::test]
async fn a_streamed_body_is_cut_off_at_the_limit() {
    let (counter, edge) = limited().await;
    let response = edge
        .request(Method::POST, "/api/v1/tours")
        .body(chunked(LIMIT + 1000))
        .send()
        .await
        .expect("answers");
    assert_problem(response, 413, "body-too-large").await;
    assert_eq!(counter.seen(), 0, "the service never had a whole body");
    assert_eq!(edge.get("/api/v1/tours").await.status(), 200, "the edge goes on");
}

async fn impatient(upstream: std::net::SocketAddr) -> Edge {
    let endpoints = EndpointsFile::new(&[upstream], &[]);
    Edge::start_with(endpoints, &[("GATEWAY_UPSTREAM_TIMEOUT", "300ms")]).await
}

#[tokio::test]
async fn a_service_that_does_not_answer_in_time_is_a_504() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let edge = impatient(silent.local_addr().expect("has an address")).await;
    let response = edge
        .request(Method::POST, "/api/v1/tours")
        .body("{}")
        .send()
        .await
        .expect("answers");
    assert_problem(response, 504, "upstream-timeout").await;
}

#[tokio::test]
async fn a_client_that_does_not_send_its_body_in_time_is_a_408() {
    let edge = impatient(Counter::start().await.addr).await;
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    let body = reqwest::Body::wrap_stream(first.chain(stream::pending()));
    let response = edge
        .request(Method::POST, "/api/v1/tours")
        .body(body)
        .send()
        .await
        .expect("answers");
    assert_problem(response, 408, "request-timeout").await;
}

#[tokio::test]
async fn an_answer_that_stalls_is_cut_off() {
    let stalling = upstream::serve(Router::new().fallback(async || {
        let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        Body::from_stream(first.chain(stream::pending()))
    }))
    .await;
    let edge = impatient(stalling).await;
    let response = edge.get("/api/v1/tours").await;
    assert_eq!(response.status(), 200);
    let body = tokio::time::timeout(Duration::from_secs(20), response.bytes())
        .await
        .expect("ends");
    assert!(body.is_err(), "a truncated answer must not look whole");
}

#[tokio::test]
async fn a_service_that_breaks_the_connection_is_a_502() {
    let broken = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let addr = broken.local_addr().expect("has an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = broken.accept().await {
            let mut head = [0; 64];
            drop(tokio::io::AsyncReadExt::read(&mut stream, &mut head).await);
        }
    });
    let edge = Edge::before(&[addr]).await;
    let response = edge
        .request(Method::POST, "/api/v1/tours")
        .body("{}")
        .send()
        .await
        .expect("answers");
    assert_problem(response, 502, "upstream-broken").await;
}
