//! Against a real HAProxy, with gateways that only say who they are.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{Instant, sleep},
};

use super::{Gateway, HaProxy};
use crate::{
    setup,
    testing::{Folder, Started, free_port, listening},
};

/// Serves its number on one port and its readiness on another; a request takes 20 ms.
struct FakeGateway {
    gateway: Gateway,
    ready: Arc<AtomicBool>,
    tasks: [JoinHandle<()>; 2],
}

impl FakeGateway {
    async fn start(number: u16) -> Self {
        let [http, admin] = [listen().await, listen().await];
        let [http_port, admin_port] = [&http, &admin].map(|listener| listener.local_addr().unwrap().port());
        let gateway = Gateway {
            number,
            http: http_port,
            admin: admin_port,
        };
        let ready = Arc::new(AtomicBool::new(true));
        let readiness = ready.clone();
        let tasks = [
            tokio::spawn(serve(http, move || {
                (200, number.to_string(), Duration::from_millis(20))
            })),
            tokio::spawn(serve(admin, move || {
                let status = if readiness.load(Ordering::Relaxed) { 200 } else { 503 };
                (status, String::new(), Duration::ZERO)
            })),
        ];
        Self { gateway, ready, tasks }
    }
}

impl Drop for FakeGateway {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.unwrap()
}

async fn serve(listener: TcpListener, answer: impl Fn() -> (u16, String, Duration) + Clone + Send + Sync + 'static) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                seen.extend_from_slice(&buffer[..read]);
                if !seen.ends_with(b"\r\n\r\n") {
                    continue;
                }
                seen.clear();
                let (status, body, delay) = answer();
                sleep(delay).await;
                let response = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                if stream.write_all(response.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// One request on a connection of its own: status line and body.
async fn get(port: u16, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: rowlock\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

async fn eventually<F: Future<Output = Result<(), String>>>(mut probe: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(error) = probe().await {
        assert!(Instant::now() < deadline, "{error}");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn start(folder: &Folder, gateways: &[Gateway]) -> (HaProxy, Started) {
    let program = setup::binaries().unwrap().haproxy;
    let haproxy = HaProxy::new(&program, &folder.path().join("haproxy"), free_port(), free_port());
    let launch = haproxy.launch(gateways).await.unwrap();
    let started = Started::new(&launch, || haproxy.probe(gateways)).await;
    (haproxy, started)
}

#[tokio::test]
async fn requests_spread_evenly_and_haproxy_listens_on_loopback_alone() {
    let folder = Folder::new("haproxy-spread");
    let fakes = [FakeGateway::start(1).await, FakeGateway::start(2).await];
    let (haproxy, started) = start(&folder, &fakes.each_ref().map(|fake| fake.gateway)).await;
    let mut listens = [haproxy.front, haproxy.stats].map(|port| format!("127.0.0.1:{port}"));
    listens.sort_unstable();
    assert_eq!(listening(started.pid()), listens);
    let mut served = BTreeMap::new();
    for _ in 0..20 {
        let (_, body) = get(haproxy.front, "/").await;
        *served.entry(body).or_insert(0) += 1;
    }
    assert_eq!(served, BTreeMap::from([("1".to_owned(), 10), ("2".to_owned(), 10)]));
    let (status, metrics) = get(haproxy.stats, "/metrics").await;
    assert!(
        status.contains("200") && metrics.contains("haproxy_backend_http_requests_total"),
        "{status}"
    );
}

#[tokio::test]
async fn a_gateway_that_is_not_ready_gets_no_request_until_it_is() {
    let folder = Folder::new("haproxy-ready");
    let fakes = [FakeGateway::start(1).await, FakeGateway::start(2).await];
    let gateways = fakes.each_ref().map(|fake| fake.gateway);
    let (haproxy, _started) = start(&folder, &gateways).await;
    fakes[0].ready.store(false, Ordering::Relaxed);
    eventually(|| async {
        match haproxy.probe(&gateways).await {
            Err(reason) if reason.contains("gateway-1 is DOWN") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    for _ in 0..6 {
        assert_eq!(get(haproxy.front, "/").await.1, "2");
    }
    fakes[0].ready.store(true, Ordering::Relaxed);
    eventually(|| haproxy.probe(&gateways)).await;
}

#[tokio::test]
async fn gateways_come_and_go_under_load_without_a_failed_request() {
    let folder = Folder::new("haproxy-scale");
    let fakes = [FakeGateway::start(1).await, FakeGateway::start(2).await];
    let [first, second] = fakes.each_ref().map(|fake| fake.gateway);
    let (haproxy, _started) = start(&folder, &[first]).await;
    let running = Arc::new(AtomicBool::new(true));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (running, port) = (running.clone(), haproxy.front);
            tokio::spawn(async move {
                let mut served = BTreeMap::new();
                while running.load(Ordering::Relaxed) {
                    let (status, body) = get(port, "/").await;
                    assert!(status.contains("200"), "{status}");
                    *served.entry(body).or_insert(0) += 1;
                }
                served
            })
        })
        .collect();

    haproxy.add(second).await.unwrap();
    let both = [first, second];
    eventually(|| haproxy.probe(&both)).await;
    for _ in 0..4 {
        get(haproxy.front, "/").await;
    }
    haproxy.remove(second).await.unwrap();
    haproxy.probe(&[first]).await.unwrap();
    // Its process may be ended now; requests that still reached it would fail.
    let [_kept, gone] = fakes;
    drop(gone);
    for _ in 0..4 {
        assert_eq!(get(haproxy.front, "/").await.1, "1");
    }
    running.store(false, Ordering::Relaxed);
    let mut total: BTreeMap<String, u64> = BTreeMap::new();
    for served in load {
        for (body, count) in served.await.unwrap() {
            *total.entry(body).or_default() += count;
        }
    }
    assert!(total.keys().all(|body| body == "1" || body == "2"), "{total:?}");
    assert!(total["2"] > 0, "the added gateway served nothing: {total:?}");
}

#[tokio::test]
async fn a_configuration_that_haproxy_refuses_is_an_error_with_its_words() {
    let folder = Folder::new("haproxy-bad");
    let program = setup::binaries().unwrap().haproxy;
    let haproxy = HaProxy::new(&program, &folder.path().join("haproxy"), free_port(), free_port());
    let twice = Gateway {
        number: 1,
        http: 1,
        admin: 2,
    };
    let error = haproxy.launch(&[twice, twice]).await.unwrap_err().to_string();
    assert!(error.contains("gateway-1"), "{error}");
}
