//! Which request is sent to a second replica when the first one fails it: one test a row of the table in
//! `gateway/src/proxy/retry.rs`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::stream;
use reqwest::{Method, RequestBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::upstream::Counter;
use crate::support::{Edge, EndpointsFile, assert_problem, dead};

/// Reads a whole request, perhaps begins an answer, and breaks off.
struct Breaking {
    addr: SocketAddr,
    seen: Arc<AtomicU64>,
}

impl Breaking {
    /// `answer` is what is sent before the connection is closed.
    async fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let addr = listener.local_addr().expect("has an address");
        let seen = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                tokio::spawn(async move {
                    let mut read = Vec::new();
                    while !is_whole(&read) {
                        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    drop(stream.write_all(answer.as_bytes()).await);
                });
            }
        });
        Self { addr, seen }
    }

    fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }
}

/// Bodies of these tests end with `!`.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    head.starts_with("GET") || body.contains('!')
}

const BODY: &str = "12345678!";

/// An edge whose first request goes to the broken replica.
async fn edge(broken: &Breaking, alive: &Counter) -> Edge {
    Edge::before(&[broken.addr, alive.addr]).await
}

async fn send(request: RequestBuilder) -> reqwest::Response {
    request.send().await.expect("answers")
}

#[tokio::test]
async fn a_request_for_which_there_was_no_connection_goes_elsewhere_whatever_it_is() {
    let alive = Counter::start().await;
    let edge = Edge::before(&[dead().await, alive.addr]).await;
    for method in [Method::GET, Method::POST, Method::DELETE] {
        for _ in 0..2 {
            let request = edge.request(method.clone(), "/api/v1/tours").body(BODY);
            assert_eq!(send(request).await.status(), 200, "{method}");
        }
    }
    assert_eq!(alive.seen(), 6, "each arrived once");
}

#[tokio::test]
async fn a_get_whose_replica_breaks_off_is_repeated_elsewhere() {
    let (broken, alive) = (Breaking::start("").await, Counter::start().await);
    let edge = edge(&broken, &alive).await;
    assert_eq!(edge.get("/api/v1/tours").await.status(), 200);
    assert_eq!((broken.seen(), alive.seen()), (1, 1));
}

#[tokio::test]
async fn a_post_without_a_key_whose_replica_breaks_off_is_not_sent_twice() {
    let (broken, alive) = (Breaking::start("").await, Counter::start().await);
    let edge = edge(&broken, &alive).await;
    let response = send(edge.request(Method::POST, "/api/v1/tours").body(BODY)).await;
    assert_problem(response, 502, "upstream-broken").await;
    assert_eq!((broken.seen(), alive.seen()), (1, 0));
}

#[tokio::test]
async fn a_post_with_a_key_is_repeated_elsewhere_with_its_whole_body() {
    for streamed in [false, true] {
        let (broken, alive) = (Breaking::start("").await, Counter::start().await);
        let edge = edge(&broken, &alive).await;
        let pieces = BODY
            .as_bytes()
            .chunks(3)
            .map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece)));
        let body = match streamed {
            true => reqwest::Body::wrap_stream(stream::iter(pieces.collect::<Vec<_>>())),
            false => BODY.into(),
        };
        let request = edge
            .request(Method::POST, "/api/v1/tours")
            .header("idempotency-key", "k");
        let response = send(request.body(body)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.text().await.expect("is text"), BODY.len().to_string());
        assert_eq!((broken.seen(), alive.seen()), (1, 1), "streamed: {streamed}");
    }
}

#[tokio::test]
async fn a_key_is_worth_nothing_to_a_service_that_does_not_honour_it() {
    let (broken, alive) = (Breaking::start("").await, Counter::start().await);
    let edge = Edge::start(EndpointsFile::new(&[], &[broken.addr, alive.addr])).await;
    let request = edge
        .anonymous(Method::POST, "/oauth2/token")
        .header("idempotency-key", "k");
    assert_problem(send(request.body(BODY)).await, 502, "upstream-broken").await;
    assert_eq!((broken.seen(), alive.seen()), (1, 0));
}

#[tokio::test]
async fn an_answer_that_has_begun_is_cut_off_and_never_begun_again() {
    const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun";
    for key in [false, true] {
        let (broken, alive) = (Breaking::start(BEGUN).await, Counter::start().await);
        let edge = edge(&broken, &alive).await;
        let mut request = edge.request(Method::POST, "/api/v1/tours").body(BODY);
        if key {
            request = request.header("idempotency-key", "k");
        }
        let response = send(request).await;
        assert_eq!(response.status(), 200);
        assert!(
            response.bytes().await.is_err(),
            "a truncated answer must not look whole"
        );
        assert_eq!((broken.seen(), alive.seen()), (1, 0), "key: {key}");
    }
}

#[tokio::test]
async fn when_every_replica_breaks_off_each_was_tried_once() {
    let broken = [Breaking::start("").await, Breaking::start("").await];
    let edge = Edge::before(&broken.each_ref().map(|replica| replica.addr)).await;
    assert_problem(edge.get("/api/v1/tours").await, 502, "upstream-broken").await;
    assert_eq!(broken.each_ref().map(Breaking::seen), [1, 1]);
}
