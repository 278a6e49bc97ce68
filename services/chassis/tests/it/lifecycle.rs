//! Two-stage shutdown: nothing in flight is lost, and nothing waits for ever.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use chassis::config::{Common, HumanDuration};
use http::StatusCode;
use http::header::CONNECTION;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Barrier, Semaphore};

use crate::process;
use crate::service::{Parts, run, serve, task};

fn common(drain_delay: Duration, drain_timeout: Duration) -> Common {
    Common {
        drain_delay: HumanDuration(drain_delay),
        drain_timeout: HumanDuration(drain_timeout),
        ..Common::default()
    }
}

const PATIENT: Duration = Duration::from_secs(60);

async fn connect(addr: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(addr).await.expect("the service accepts");
    let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a new connection");
    tokio::spawn(connection);
    sender
}

/// One request: its status, and whether the service asks to close the connection.
async fn request(sender: &mut SendRequest<Empty<Bytes>>, path: &str) -> hyper::Result<(StatusCode, bool)> {
    sender.ready().await?;
    let request = http::Request::get(path)
        .header("host", "test")
        .body(Empty::new())
        .expect("a request");
    let answer = sender.send_request(request).await?;
    let (status, close) = (
        answer.status(),
        answer.headers().get(CONNECTION).is_some_and(|value| value == "close"),
    );
    answer.into_body().collect().await?;
    Ok((status, close))
}

/// A handler that reports its arrival and waits to be let go.
fn gated(arrived: &Arc<Semaphore>, gate: &Arc<Semaphore>) -> Router {
    let (arrived, gate) = (Arc::clone(arrived), Arc::clone(gate));
    Router::new().route(
        "/gated",
        get(async move || {
            arrived.add_permits(1);
            drop(gate.acquire().await);
            "done"
        }),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight_are_answered_and_new_connections_are_refused() {
    const REQUESTS: usize = 200;
    let (arrived, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let parts = Parts {
        router: gated(&arrived, &gate),
        ..Parts::default()
    };
    let running = run(common(Duration::ZERO, PATIENT), parts).await;
    let addr = running.http_addr;
    let requests: Vec<_> = (0..REQUESTS)
        .map(|_| tokio::spawn(async move { request(&mut connect(addr).await, "/gated").await }))
        .collect();
    drop(arrived.acquire_many(u32::try_from(REQUESTS).unwrap()).await.unwrap());
    // An idle connection must not hold up the shutdown.
    let idle = connect(addr).await;

    let shutdown = tokio::spawn(running.shutdown());
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!shutdown.is_finished(), "requests are in flight");
    gate.add_permits(REQUESTS);
    for answered in requests {
        let (status, close) = answered.await.unwrap().expect("an answer");
        assert_eq!(status, StatusCode::OK);
        assert!(close, "the connection was not told to close");
    }
    shutdown.await.unwrap().unwrap();
    while !idle.is_closed() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_loop_clients_on_kept_connections_lose_nothing() {
    const CLIENTS: usize = 40;
    let running = serve(Router::new().route("/", get(async || tokio::task::yield_now().await))).await;
    let addr = running.http_addr;
    let warm = Arc::new(Barrier::new(CLIENTS + 1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let warm = Arc::clone(&warm);
            tokio::spawn(async move {
                let mut connection = connect(addr).await;
                request(&mut connection, "/").await?;
                warm.wait().await;
                let mut answered = 0_u64;
                loop {
                    // Time between requests, during which the connection is idle; without a clock, so that a busy
                    // machine slows both sides alike.
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    let (status, close) = request(&mut connection, "/").await?;
                    assert_eq!(status, StatusCode::OK);
                    answered += 1;
                    if close {
                        return hyper::Result::Ok(answered);
                    }
                }
            })
        })
        .collect();
    warm.wait().await;
    running.shutdown().await.unwrap();
    for client in clients {
        let answered = client.await.unwrap().expect("every request that was sent is answered");
        assert!(answered > 0);
    }
}

#[tokio::test]
async fn connections_nobody_accepted_yet_are_served_before_the_listener_closes() {
    let running = serve(Router::new().route("/", get(async || "served"))).await;
    let addr = running.http_addr;
    // This runtime has one thread: until the next await below, nobody accepts these.
    let streams: Vec<_> = (0..50).map(|_| std::net::TcpStream::connect(addr).unwrap()).collect();
    let requests = futures::future::join_all(streams.into_iter().map(|stream| async {
        stream.set_nonblocking(true).unwrap();
        let stream = TokioIo::new(TcpStream::from_std(stream).unwrap());
        let (mut sender, connection) = handshake(stream).await.unwrap();
        tokio::spawn(connection);
        request(&mut sender, "/").await
    }));
    let (drained, answers) = tokio::join!(running.shutdown(), requests);
    drained.unwrap();
    for answer in answers {
        assert_eq!(answer.expect("an answer").0, StatusCode::OK);
    }
}

#[tokio::test]
async fn readiness_turns_503_before_the_listener_closes() {
    let running = run(common(Duration::from_secs(1), PATIENT), Parts::default()).await;
    let (http, admin) = (running.http_addr, running.admin_addr);
    let shutdown = tokio::spawn(running.shutdown());
    let body: serde_json::Value = loop {
        let answer = reqwest::get(format!("http://{admin}/readyz")).await.unwrap();
        if answer.status() == 503 {
            break answer.json().await.unwrap();
        }
    };
    assert_eq!(body["draining"], true);
    let live = reqwest::get(format!("http://{admin}/livez")).await.unwrap();
    assert_eq!(live.status(), 200);
    assert_eq!(
        request(&mut connect(http).await, "/").await.unwrap(),
        (StatusCode::NOT_FOUND, true)
    );
    shutdown.await.unwrap().unwrap();
}

#[tokio::test]
async fn background_tasks_drain_after_the_last_request() {
    let (arrived, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let drained = Arc::new(AtomicBool::new(false));
    let worker = task("worker", {
        let drained = Arc::clone(&drained);
        async move |cx| {
            cx.drain.cancelled().await;
            drained.store(true, Ordering::SeqCst);
            Ok(())
        }
    });
    let parts = Parts {
        router: gated(&arrived, &gate),
        background: vec![worker],
        ..Parts::default()
    };
    let running = run(common(Duration::ZERO, PATIENT), parts).await;
    let addr = running.http_addr;
    let slow = tokio::spawn(async move { request(&mut connect(addr).await, "/gated").await });
    drop(arrived.acquire().await.unwrap());
    let shutdown = tokio::spawn(running.shutdown());
    while TcpStream::connect(addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(
        !drained.load(Ordering::SeqCst),
        "drained under a request that may still need it"
    );
    gate.add_permits(1);
    assert_eq!(slow.await.unwrap().unwrap().0, StatusCode::OK);
    shutdown.await.unwrap().unwrap();
    assert!(drained.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off_by_the_timeout() {
    let (arrived, never) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let parts = Parts {
        router: gated(&arrived, &never),
        ..Parts::default()
    };
    let running = run(common(Duration::ZERO, Duration::from_millis(300)), parts).await;
    let addr = running.http_addr;
    let stuck = tokio::spawn(async move { request(&mut connect(addr).await, "/gated").await });
    drop(arrived.acquire().await.unwrap());
    let error = running.shutdown().await.unwrap_err().to_string();
    assert!(error.contains("300ms") && error.contains("1 connections"), "{error}");
    stuck.await.unwrap().expect_err("its connection was cut");
}

#[tokio::test]
async fn a_background_task_that_never_ends_is_cut_off_by_the_timeout_and_named() {
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counted = Counted(Arc::clone(&dropped));
    let stubborn = task("stubborn", async move |_| {
        let _counted = counted;
        std::future::pending().await
    });
    let orderly = task("orderly", async |cx| {
        cx.drain.cancelled().await;
        Ok(())
    });
    let parts = Parts {
        background: vec![stubborn, orderly],
        ..Parts::default()
    };
    let running = run(common(Duration::ZERO, Duration::from_millis(300)), parts).await;
    let error = running.shutdown().await.unwrap_err().to_string();
    assert!(error.contains("stubborn") && !error.contains("orderly"), "{error}");
    while dropped.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_background_task_that_fails_while_draining_fails_the_shutdown() {
    let failing = task("failing", async |cx| {
        cx.drain.cancelled().await;
        anyhow::bail!("could not flush")
    });
    let parts = Parts {
        background: vec![failing],
        ..Parts::default()
    };
    let running = run(common(Duration::ZERO, PATIENT), parts).await;
    let error = format!("{:#}", running.shutdown().await.unwrap_err());
    assert!(
        error.contains("failing") && error.contains("could not flush"),
        "{error}"
    );
}

/// Waits until a handler of the process is at work.
async fn wait_for_request(admin: SocketAddr) {
    let at_work = |metrics: &str| {
        metrics
            .lines()
            .any(|line| line.starts_with("http_server_active_requests{") && line.ends_with(" 1"))
    };
    while !at_work(
        &reqwest::get(format!("http://{admin}/metrics"))
            .await
            .unwrap()
            .text()
            .await
            .unwrap(),
    ) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_process_answers_what_is_in_flight_and_exits_with_0() {
    let hello = process::serve(&[("HELLO_PAUSE", "500ms")]);
    let (http, admin) = (hello.http, hello.admin);
    let slow = tokio::spawn(async move { request(&mut connect(http).await, "/slow").await });
    wait_for_request(admin).await;
    hello.terminate();
    assert_eq!(slow.await.unwrap().unwrap().0, StatusCode::OK);
    let finished = hello.finished();
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_a_process_at_once_with_1() {
    let hello = process::serve(&[("HELLO_PAUSE", "1h"), ("HELLO_DRAIN_TIMEOUT", "1h")]);
    let (http, admin) = (hello.http, hello.admin);
    let stuck = tokio::spawn(async move { request(&mut connect(http).await, "/slow").await });
    wait_for_request(admin).await;
    hello.terminate();
    while reqwest::get(format!("http://{admin}/readyz")).await.unwrap().status() != 503 {}
    hello.terminate();
    let finished = hello.finished();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.contains("second signal"), "{}", finished.stdout);
    stuck.await.unwrap().expect_err("its connection was cut");
}

#[tokio::test]
async fn a_crashed_background_task_ends_the_process_with_1() {
    let hello = process::serve(&[]);
    let answer = reqwest::Client::new()
        .post(format!("http://{}/crash", hello.http))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 202);
    let finished = hello.finished();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stdout.contains("asked to crash"), "{}", finished.stdout);
}
