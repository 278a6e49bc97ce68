//! Bounds on what a service does at once, how long it works for somebody who has gone, and how long it waits for a body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use chassis::config::{Common, parse_from};
use chassis::db;
use chassis::deadline::{self, Deadline};
use chassis::problem::Json;
use reqwest::Client;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::servers::{chassis, url};
use crate::service::{Parts, run, serve};

async fn kind(answer: reqwest::Response) -> (u16, String) {
    let status = answer.status().as_u16();
    let problem: Value = answer.json().await.unwrap();
    (status, problem["type"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_handler_that_outlives_its_deadline_is_dropped_and_one_that_has_none_left_is_not_called() {
    let called = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&called);
    let router = Router::new().route(
        "/forever",
        get(async move || {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }),
    );
    let running = serve(router).await;
    let ask = async |budget: &str| {
        let request = Client::new().get(format!("http://{}/forever", running.http_addr));
        kind(request.header(deadline::HEADER, budget).send().await.unwrap()).await
    };
    let exceeded = (504, "urn:rowlock:problem:deadline-exceeded".to_owned());
    assert_eq!(ask("100").await, exceeded);
    assert_eq!(called.load(Ordering::SeqCst), 1);
    assert_eq!(ask("0").await, exceeded);
    assert_eq!(called.load(Ordering::SeqCst), 1);
    assert_eq!(
        ask("now").await,
        (400, "urn:rowlock:problem:malformed-deadline".to_owned())
    );
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_handler_knows_its_deadline() {
    let router = Router::new().route(
        "/left",
        get(async || Json(Deadline::current().map(|deadline| deadline.budget().as_millis() as u64))),
    );
    let running = serve(router).await;
    let request = || Client::new().get(format!("http://{}/left", running.http_addr));
    let with = request().header(deadline::HEADER, "60000").send().await.unwrap();
    assert_eq!(with.json::<Value>().await.unwrap(), 60_000);
    let without = request().send().await.unwrap();
    assert_eq!(without.json::<Value>().await.unwrap(), Value::Null);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn past_the_deadline_not_even_a_free_connection_is_given_to_what_a_handler_left_behind() {
    let pairs = [("IT_DB_URL", format!("{}/postgres", url("ROWLOCK_TEST_POSTGRES")))];
    let pairs = pairs.each_ref().map(|(name, value)| (*name, value.as_str()));
    let pool = db::pool(&parse_from("it", &pairs).unwrap(), &chassis()).unwrap();
    drop(db::acquire(&pool).await.expect("one is free"));
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
    let theirs = pool.clone();
    let router = Router::new().route(
        "/",
        post(async move || {
            let tell = tell.lock().unwrap().take().expect("it is called once");
            let left_behind = async move {
                let deadline = Deadline::current().expect("it was carried");
                let before = db::acquire(&theirs).await.is_ok();
                tokio::time::sleep_until(deadline.at()).await;
                let _ = tell.send((before, db::acquire(&theirs).await.is_ok()));
            };
            tokio::spawn(deadline::carried(left_behind));
        }),
    );
    let running = serve(router).await;
    let request = Client::new().post(format!("http://{}/", running.http_addr));
    // Long enough for the first connection on a busy machine.
    let answer = request.header(deadline::HEADER, "3000").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(told.await.unwrap(), (true, false));
    assert!(db::acquire(&pool).await.is_ok(), "others have no deadline");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_body_that_comes_byte_by_byte_is_a_408_within_the_bound() {
    let router = Router::new().route("/", post(async |Json(body): Json<Value>| Json(body)));
    let common = Common {
        body_timeout: "300ms".parse().unwrap(),
        ..Common::default()
    };
    let parts = Parts {
        router,
        ..Parts::default()
    };
    let running = run(common, parts).await;
    let stream = TcpStream::connect(running.http_addr).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let head = "POST / HTTP/1.1\r\nhost: slow\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    to.write_all(head.as_bytes()).await.unwrap();
    let drip = tokio::spawn(async move {
        // Each byte comes well within the bound; a bound on the pause between two would never be reached.
        while to.write_all(b" ").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let mut answer = String::new();
    // The service closes what will never be a whole request.
    let _ = from.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("urn:rowlock:problem:request-timeout"), "{answer}");
    drip.abort();
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_body_that_ends_early_or_is_no_chunked_one_is_refused() {
    let router = Router::new().route("/", post(async |Json(body): Json<Value>| Json(body)));
    let running = serve(router).await;
    for rest in [
        "content-length: 1000\r\n\r\n{}",
        "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n2\r\n{}",
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "content-length: two\r\n\r\n{}",
        "content-length: -2\r\n\r\n{}",
        "transfer-encoding: gzip\r\n\r\n{}",
    ] {
        let mut stream = TcpStream::connect(running.http_addr).await.unwrap();
        let request = format!("POST / HTTP/1.1\r\nhost: odd\r\ncontent-type: application/json\r\n{rest}");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        let status = answer.split(' ').nth(1).unwrap_or("closed");
        assert!(status.starts_with('4') || status == "closed", "{rest:?}: {answer}");
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn beyond_its_bounds_a_service_refuses_and_a_refused_client_that_is_still_sending_hears_so() {
    let (release, reached) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (wait, tell) = (Arc::clone(&release), Arc::clone(&reached));
    let router = Router::new().route(
        "/",
        post(async move |_: Bytes| {
            tell.add_permits(1);
            wait.acquire().await.unwrap().forget();
        }),
    );
    let common = Common {
        max_in_flight: 1,
        queue_max: 0,
        ..Common::default()
    };
    let parts = Parts {
        router,
        ..Parts::default()
    };
    let running = run(common, parts).await;
    let url = format!("http://{}/", running.http_addr);
    let first = tokio::spawn(Client::new().post(&url).body("{}").send());
    reached.acquire().await.unwrap().forget();

    let large = Client::new().post(&url).body(vec![b' '; 500_000]).send().await.unwrap();
    assert_eq!(large.headers()["retry-after"], "1");
    assert_eq!(kind(large).await, (503, "urn:rowlock:problem:overloaded".to_owned()));
    let metrics = reqwest::get(format!("http://{}/metrics", running.admin_addr))
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("http_server_shed_requests"), "{metrics}");

    release.add_permits(1);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    running.shutdown().await.unwrap();
}
