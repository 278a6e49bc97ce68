//! CPU per request on a small keep-alive answer.
use bytes::Bytes;
use http_body_util::Full;
use load::*;
use std::sync::Arc;
use std::time::Duration;
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port: u16 = std::env::args().nth(1).map(|p| p.parse().unwrap()).unwrap_or_else(|| {
        let (tx, rx) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let rt = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            rt.block_on(async move {
                let l = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tx.send(l.local_addr().unwrap().port()).unwrap();
                loop {
                    let (s, _) = l.accept().await.unwrap();
                    s.set_nodelay(true).unwrap();
                    tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(
                        hyper_util::rt::TokioIo::new(s),
                        hyper::service::service_fn(|_| async {
                            Ok::<_, std::convert::Infallible>(hyper::Response::new(Full::new(Bytes::from_static(
                                b"{\"ok\":true}",
                            ))))
                        }),
                    ));
                }
            });
        });
        rx.recv().unwrap()
    });
    let hook = std::env::var("HOOK").is_ok();
    let body = std::env::var("BODY").is_ok();
    let url: Url = format!("http://127.0.0.1:{port}/").parse().unwrap();
    let mut b = HttpTarget::builder(if body { http::Method::POST } else { http::Method::GET }, url);
    if hook {
        b = b.on_response(|e| {
            assert!(!e.body.is_empty());
            Ok(())
        });
    }
    if body {
        b = b
            .header("idempotency-key", "{{uuid}}")
            .header("content-type", "application/json")
            .body(format!(
                "{{\"id\":\"{{{{uuid}}}}\",\"n\":{{{{sequence}}}},\"x\":\"{}\"}}",
                "y".repeat(9000)
            ));
    }
    let t = Arc::new(b.build().unwrap());
    let s = run(
        t,
        &Closed {
            users: 20,
            warm_up: Duration::from_millis(500),
            duration: Duration::from_secs(4),
            think: Duration::ZERO,
            max_iterations: None,
        },
        |s| {
            println!(
                "{} ok {} p50 {} p95 {} max {}",
                s.index, s.ok, s.p50_ms, s.p95_ms, s.max_ms
            )
        },
    )
    .await
    .unwrap();
    println!(
        "ok {} err {:?} {:?} rate {:.0} cpu/req {:.2} us little {:.3} late {}",
        s.ok,
        s.errors,
        s.failures,
        s.throughput,
        s.cpu_us_per_iteration(),
        s.little_n(),
        s.late
    );
}
