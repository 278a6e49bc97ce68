//! How much time a service is given.

use std::net::SocketAddr;

use reqwest::Method;
use tokio::net::TcpListener;

use crate::support::{Edge, EndpointsFile, assert_problem, upstream};

const HEADER: &str = "rowlock-deadline-ms";

/// What the service was told, in milliseconds.
async fn told(edge: &Edge, clients: Option<&str>) -> u64 {
    let mut request = edge.request(Method::GET, "/api/v1/tours");
    if let Some(clients) = clients {
        request = request.header(HEADER, clients);
    }
    let text = request.send().await.expect("answers").text().await.expect("is text");
    let prefix = format!("{HEADER}: ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix.as_str()));
    let told = lines.next().expect("the header is there").parse().expect("a number");
    assert_eq!(lines.next(), None, "it is there once: {text}");
    told
}

#[tokio::test]
async fn the_service_is_told_what_is_left_of_the_edges_time_or_of_the_clients_if_that_is_less() {
    let edge = Edge::before(&[upstream::echo().await]).await;
    let own = told(&edge, None).await;
    assert!((1..=60_000).contains(&own), "{own}");
    let clients = told(&edge, Some("20000")).await;
    assert!((1..=20_000).contains(&clients), "{clients}");
    let own = told(&edge, Some("900000")).await;
    assert!((1..=60_000).contains(&own), "{own}");
}

async fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let addr = listener.local_addr().expect("has an address");
    (listener, addr)
}

#[tokio::test]
async fn a_client_that_waits_less_than_the_edge_gets_its_504_when_it_said() {
    let (_listener, addr) = silent().await;
    // The edge's own 60 s would be more than the test framework's patience.
    let edge = Edge::before(&[addr]).await;
    let response = edge
        .request(Method::GET, "/api/v1/tours")
        .header(HEADER, "200")
        .send()
        .await
        .expect("answers");
    assert_eq!(response.status(), 504);
}

#[tokio::test]
async fn a_deadline_that_has_passed_or_is_none_asks_no_service() {
    let counter = upstream::Counter::start().await;
    let edge = Edge::start(EndpointsFile::new(&[counter.addr], &[])).await;
    let get = async |deadline: &str| {
        let request = edge.request(Method::GET, "/api/v1/tours").header(HEADER, deadline);
        request.send().await.expect("answers")
    };
    assert_problem(get("0").await, 504, "deadline-exceeded").await;
    assert_problem(get("soon").await, 400, "malformed-deadline").await;
    assert_eq!(counter.seen(), 0);
}
