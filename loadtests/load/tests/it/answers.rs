//! What comes over a connection, byte for byte: answers of every form, and what is none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::routing::post as on_post;
use load::{Failure, HttpTarget, Kind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{MS, errors, get, limited, misbehaving, post, run, serve, url};

/// A server that gives every request the same answer, in these pieces, and keeps its connections.
async fn saying(pieces: Vec<String>) -> (SocketAddr, Arc<AtomicU64>) {
    let pieces: Arc<[String]> = pieces.into();
    misbehaving(move |mut stream| {
        let pieces = Arc::clone(&pieces);
        async move {
            stream.set_nodelay(true)?;
            while stream.read(&mut [0; 4096]).await? > 0 {
                for (at, piece) in pieces.iter().enumerate() {
                    if at > 0 {
                        // The pieces are to arrive apart.
                        tokio::time::sleep(5 * MS).await;
                    }
                    stream.write_all(piece.as_bytes()).await?;
                }
            }
            Ok(())
        }
    })
    .await
}

const REQUESTS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_come_in_any_form_and_any_pieces_and_ends_where_it_says() {
    let kept = [
        (
            Method::GET,
            "HTTP/1.1 100 Continue\r\n\r\n|HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no|k",
        ),
        (Method::GET, "HTTP/1.1 200 OK\r\ncontent-le|ngth: 2\r\n\r|\nok"),
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n|3|\r\nabc\r|\n1;x=y\r\nd\r\n0\r\n|t: 1\r\n\r\n",
        ),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
        (Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"),
        (
            Method::GET,
            "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
        ),
    ];
    let ended = [
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        ),
        (Method::GET, "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        // Bytes that nobody asked for are no answer to the next request.
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
        ),
        (Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    ];
    let kept = kept.map(|case| (case, 1));
    let ended = ended.map(|case| (case, REQUESTS));
    for ((method, answer), made) in kept.into_iter().chain(ended) {
        let (address, connections) = saying(answer.split('|').map(str::to_owned).collect()).await;
        let target = HttpTarget::builder(method, url(address, "/")).build().unwrap();
        let summary = run(target, &limited(1, REQUESTS)).await;
        assert_eq!((errors(&summary), summary.ok), (vec![], REQUESTS), "{answer:?}");
        assert_eq!(connections.load(Ordering::SeqCst), made, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_or_out_of_bounds_is_a_protocol_error_and_says_what_is_wrong() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "y".repeat(300 << 10));
    for (answer, reason) in [
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nx\r\n",
            "no size",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
            "longer than its size",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
            "`content-length: many`",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
            "nobody asked for",
        ),
        ("HTTP/1.1 200 OK\r\n: x\r\n\r\n", "header name"),
        (long.as_str(), "longer than 256 KiB"),
    ] {
        let (address, connections) = saying(vec![answer.to_owned()]).await;
        let summary = run(get(address).build().unwrap(), &limited(1, REQUESTS)).await;
        assert_eq!((errors(&summary), summary.ok), (vec![("protocol", REQUESTS)], 0));
        assert_eq!(connections.load(Ordering::SeqCst), REQUESTS);
        let detail = &summary.failures["protocol"];
        assert!(detail.contains(reason), "{reason}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_breaks_off_anywhere_is_a_closed_connection() {
    for answer in [
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let (address, _) = misbehaving(move |mut stream| async move {
            let _ = stream.read(&mut [0; 4096]).await?;
            stream.write_all(answer.as_bytes()).await
        })
        .await;
        let summary = run(get(address).build().unwrap(), &limited(1, REQUESTS)).await;
        assert_eq!(errors(&summary), [("closed", REQUESTS)], "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_larger_than_any_buffer_arrives_whole() {
    const LENGTH: usize = 16 << 20;
    let length = |body: Bytes| async move { body.len().to_string() };
    let router = axum::Router::new()
        .route("/", on_post(length))
        .layer(DefaultBodyLimit::disable());
    let target = post(serve(router).await)
        .body("x".repeat(LENGTH))
        .on_response(|exchange| {
            let counted = String::from_utf8_lossy(exchange.body);
            let whole = counted == LENGTH.to_string();
            whole.then_some(()).ok_or_else(|| Failure::new(Kind::Body, counted))
        });
    let summary = run(target.build().unwrap(), &limited(1, REQUESTS)).await;
    assert_eq!((errors(&summary), summary.ok), (vec![], REQUESTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_comes_before_the_request_is_sent_is_read_and_the_connection_given_up() {
    let (address, connections) = misbehaving(|mut stream| async move {
        let _ = stream.read(&mut [0; 1024]).await?;
        let refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 8\r\n\r\ntoo much";
        stream.write_all(refusal).await?;
        // Reads no more of it, and does not hang up either.
        std::future::pending().await
    })
    .await;
    let target = post(address).body("x".repeat(16 << 20)).build().unwrap();
    let summary = run(target, &limited(1, REQUESTS)).await;
    assert_eq!(errors(&summary), [("status-413", REQUESTS)]);
    assert_eq!(summary.failures["status-413"], "too much");
    assert_eq!(connections.load(Ordering::SeqCst), REQUESTS);
}
