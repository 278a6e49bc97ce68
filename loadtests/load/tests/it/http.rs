//! The HTTP target against servers that behave, and servers that do not.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::{get as on_get, post as on_post};
use load::{Failure, HttpTarget, Kind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{MS, closed, errors, get, limited, misbehaving, post, run, serve, url};

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_counts_what_the_server_counts() {
    let seen = Arc::new(AtomicU64::new(0));
    let count = |State(seen): State<Arc<AtomicU64>>| async move {
        let number = seen.fetch_add(1, Ordering::SeqCst);
        if number % 3 == 2 {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        }
    };
    let address = serve(
        axum::Router::new()
            .route("/", on_get(count))
            .with_state(Arc::clone(&seen)),
    )
    .await;
    let shape = closed(8, 600 * MS).warm_up(200 * MS);
    let summary = run(get(address).build().unwrap(), &shape).await;
    let counted = summary.warm_up + summary.ok + summary.failed() + summary.late;
    assert_eq!(seen.load(Ordering::SeqCst), counted);
    assert_eq!(errors(&summary).first().map(|(kind, _)| *kind), Some("status-503"));
    assert!(summary.ok > summary.failed());
    assert_eq!(
        summary.latency.len(),
        summary.ok,
        "only what went well is in the latency"
    );
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read(&mut [0; 4096]).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_closed_under_a_request_is_an_error_and_the_next_request_connects_again() {
    let (address, connections) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly the start")
            .await
    })
    .await;
    let summary = run(get(address).build().unwrap(), &limited(2, 10)).await;
    assert_eq!((errors(&summary), summary.ok), (vec![("closed", 10)], 0));
    assert_eq!(connections.load(Ordering::SeqCst), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_closed_while_idle_is_no_error() {
    let (address, connections) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .await
    })
    .await;
    let shape = limited(2, 10).think(100 * MS);
    let summary = run(get(address).build().unwrap(), &shape).await;
    assert_eq!((errors(&summary), summary.ok), (vec![], 10));
    assert_eq!(connections.load(Ordering::SeqCst), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_http_is_a_protocol_error() {
    let (address, _) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(b"220 mail.example ESMTP\r\n\r\n").await
    })
    .await;
    let summary = run(get(address).build().unwrap(), &limited(2, 10)).await;
    assert_eq!(errors(&summary), [("protocol", 10)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_within_the_timeout_is_a_timeout() {
    let (address, connections) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")
            .await?;
        std::future::pending().await
    })
    .await;
    let target = get(address).timeout(80 * MS).build().unwrap();
    let summary = run(target, &limited(3, 9)).await;
    assert_eq!(errors(&summary), [("timeout", 9)]);
    assert_eq!(
        connections.load(Ordering::SeqCst),
        9,
        "a connection that owes an answer is not used again"
    );
    assert!(summary.cycle_mean_s >= 0.08, "{}", summary.cycle_mean_s);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_never_ends_is_a_timeout_as_well() {
    let (address, _) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            stream.write_all(&[b'x'; 1 << 16]).await?;
        }
    })
    .await;
    let target = get(address).timeout(80 * MS).build().unwrap();
    assert_eq!(errors(&run(target, &limited(2, 4)).await), [("timeout", 4)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_given_takes_the_place_of_the_address() {
    let hosts = |headers: HeaderMap| async move {
        let all: Vec<_> = headers.get_all("host").iter().collect();
        assert_eq!(all, ["tours.example"]);
    };
    let address = serve(axum::Router::new().route("/", on_get(hosts))).await;
    let target = get(address).header("Host", "tours.example").build().unwrap();
    let summary = run(target, &limited(1, 3)).await;
    assert_eq!((errors(&summary), summary.ok), (vec![], 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeout_is_that_of_each_request_and_not_of_the_user() {
    let slow = || async { tokio::time::sleep(60 * MS).await };
    let address = serve(axum::Router::new().route("/", on_get(slow))).await;
    let target = get(address).timeout(2000 * MS).build().unwrap();
    let summary = run(target, &closed(1, 3000 * MS)).await;
    assert_eq!(errors(&summary), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_listening_is_a_connect_error() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let summary = run(get(gone).build().unwrap(), &limited(2, 6)).await;
    assert_eq!(errors(&summary), [("connect", 6)]);
    assert!(
        summary.failures["connect"].contains(&gone.to_string()),
        "{:?}",
        summary.failures
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_was_not_expected_keeps_the_start_of_its_body() {
    let address = serve(axum::Router::new().route("/", on_get(|| async { "fine" }))).await;
    let target = get(address).expect_status(StatusCode::CREATED).build().unwrap();
    let summary = run(target, &limited(1, 3)).await;
    assert_eq!(errors(&summary), [("status-200", 3)]);
    let missing = HttpTarget::builder(Method::GET, url(address, "/nowhere"))
        .build()
        .unwrap();
    assert_eq!(errors(&run(missing, &limited(1, 3)).await), [("status-404", 3)]);
    let (failing, _) = misbehaving(|mut stream| async move {
        read_request(&mut stream).await?;
        stream
            .write_all(b"HTTP/1.1 500 Oh\r\nconnection: close\r\n\r\nthe database is away")
            .await
    })
    .await;
    let summary = run(get(failing).build().unwrap(), &limited(1, 3)).await;
    assert_eq!(errors(&summary), [("status-500", 3)]);
    assert_eq!(summary.failures["status-500"], "the database is away");
}

/// A body of a few pieces that does not say how long it is, and is therefore sent in chunks.
struct Unsized(u32);

impl hyper::body::Body for Unsized {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        let Some(left) = self.0.checked_sub(1) else {
            return Poll::Ready(None);
        };
        self.0 = left;
        Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(b"piece")))))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_user_keeps_one_connection_whatever_the_answers_look_like() {
    let router = axum::Router::new()
        .route("/small", on_get(|| async { "ok" }))
        .route("/large", on_get(|| async { "x".repeat(100_000) }))
        .route("/none", on_get(|| async { StatusCode::NO_CONTENT }))
        .route("/chunked", on_get(|| async { Body::new(Unsized(3)) }));
    let inner = serve(router).await;
    for path in ["/small", "/large", "/none", "/chunked"] {
        let (address, connections) = misbehaving(move |mut stream| async move {
            let mut upstream = TcpStream::connect(inner).await?;
            tokio::io::copy_bidirectional(&mut stream, &mut upstream)
                .await
                .map(|_| ())
        })
        .await;
        let target = HttpTarget::builder(Method::GET, url(address, path)).build().unwrap();
        let summary = run(target, &limited(5, 100)).await;
        assert_eq!((errors(&summary), summary.ok), (vec![], 100), "{path}");
        assert_eq!(connections.load(Ordering::SeqCst), 5, "{path}");
    }
}

type Requests = Arc<Mutex<Vec<(String, String)>>>;

#[tokio::test(flavor = "multi_thread")]
async fn fields_are_unique_by_request_and_the_hook_sees_them_with_the_answer() {
    let requests = Requests::default();
    let keep = |State(requests): State<Requests>, headers: HeaderMap, body: String| async move {
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        let answer = format!("stored {body}");
        requests.lock().unwrap().push((key, body));
        (StatusCode::CREATED, [("x-shard", "seven")], answer)
    };
    let address = serve(
        axum::Router::new()
            .route("/", on_post(keep))
            .with_state(Arc::clone(&requests)),
    )
    .await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let (seen, start) = (Arc::clone(&seen), SystemTime::now());
        move |exchange: &load::Exchange<'_>| {
            assert_eq!(
                (exchange.status, exchange.headers["x-shard"].as_bytes()),
                (StatusCode::CREATED, b"seven".as_slice())
            );
            assert!(start <= exchange.sent_at && exchange.sent_at <= exchange.acked_at);
            let body = String::from_utf8(exchange.body.to_vec()).unwrap();
            seen.lock()
                .unwrap()
                .push((exchange.uuid.to_string(), exchange.sequence, body));
            Ok(())
        }
    };
    let target = post(address)
        .header("idempotency-key", "{{uuid}}")
        .header("content-type", "application/json")
        .body(r#"{"id":"{{uuid}}","number":{{sequence}}}"#)
        .expect_status(StatusCode::CREATED)
        .on_response(hook)
        .build()
        .unwrap();
    let summary = run(target, &limited(4, 100)).await;
    assert_eq!((errors(&summary), summary.ok), (vec![], 100));
    let requests = requests.lock().unwrap();
    let mut seen = seen.lock().unwrap();
    seen.sort_by_key(|(_, sequence, _)| *sequence);
    assert!(seen.iter().map(|(_, sequence, _)| *sequence).eq(1..=100));
    for (uuid, sequence, answer) in seen.iter() {
        let body = format!(r#"{{"id":"{uuid}","number":{sequence}}}"#);
        assert_eq!(*answer, format!("stored {body}"));
        assert!(requests.contains(&(uuid.clone(), body)));
    }
    assert_eq!(requests.iter().map(|(key, _)| key).collect::<HashSet<_>>().len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_the_hook_rejects_is_an_error_of_its_own_kind() {
    let address = serve(axum::Router::new().route("/", on_get(|| async { "86 rows" }))).await;
    let target = get(address)
        .on_response(|exchange| match exchange.body {
            b"87 rows" => Ok(()),
            other => Err(Failure::new(Kind::Body, String::from_utf8_lossy(other))),
        })
        .build()
        .unwrap();
    let summary = run(target, &limited(1, 5)).await;
    assert_eq!(errors(&summary), [("body", 5)]);
    assert_eq!(summary.failures["body"], "86 rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_made_are_refused_before_the_load() {
    let address = "127.0.0.1:1".parse().unwrap();
    for (builder, reason) in [
        (get(address).header("bad name", "x"), "`bad name: x` has no valid name"),
        (get(address).header("x", "a\nb"), "no valid value"),
        (get(address).header("x", "{{guid}}"), "`{{guid}}`"),
        (get(address).body("{{"), "no `}}`"),
        (get(address).timeout(Duration::ZERO), "timeout of 0"),
        (get(address).header("Content-Length", "5"), "told by the engine"),
        (
            get(address).header("transfer-encoding", "chunked"),
            "told by the engine",
        ),
        (HttpTarget::builder(Method::CONNECT, url(address, "/")), "CONNECT"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// Answers what it has not seen before with 503, and breaks off every other connection that asks for the second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_keeps_its_key_and_counts_once() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let answer = |State(seen): State<Arc<Mutex<Vec<String>>>>, headers: HeaderMap, body: Bytes| async move {
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        assert_eq!(body, key);
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|each| **each == key).count();
        seen.push(key);
        match before {
            0 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")], "later"),
            _ => (StatusCode::OK, [("retry-after", "0")], "done"),
        }
    };
    let router = axum::Router::new()
        .route("/", on_post(answer))
        .with_state(Arc::clone(&seen));
    let address = serve(router).await;
    let hooked: Arc<Mutex<Vec<SystemTime>>> = Arc::default();
    let record = Arc::clone(&hooked);
    let target = post(address)
        .header("idempotency-key", "{{uuid}}")
        .body("{{uuid}}")
        .repeat(Duration::from_secs(10))
        .on_response(move |exchange| {
            record.lock().unwrap().push(exchange.sent_at);
            Ok(())
        });
    let target = Arc::new(target.build().unwrap());
    let summary = load::run(Arc::clone(&target), &limited(2, 6), |_| {}).await.unwrap();
    assert_eq!((summary.ok, errors(&summary)), (6, vec![]));
    assert_eq!(target.repeated(), 6);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen.iter().collect::<HashSet<_>>().len()), (12, 6));
    let sent: HashSet<SystemTime> = hooked.lock().unwrap().iter().copied().collect();
    assert_eq!(sent.len(), 6, "a repetition is as old as its request");
}
