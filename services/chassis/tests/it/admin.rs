//! The admin port: readiness by kind of dependency, and the metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::get;
use chassis::config::Common;
use chassis::readiness::{Dependency, Kind};
use futures::FutureExt;
use serde_json::{Value, json};

use crate::service::{Parts, run, serve};

fn dependency(name: &'static str, kind: Kind, answer: Result<(), &'static str>) -> Dependency {
    Dependency::new(name, kind, move || async move { answer.map_err(str::to_owned) }.boxed())
}

async fn ready(dependencies: Vec<Dependency>) -> (u16, Value) {
    let running = run(
        Common::default(),
        Parts {
            dependencies,
            ..Parts::default()
        },
    )
    .await;
    let answer = reqwest::get(format!("http://{}/readyz", running.admin_addr))
        .await
        .unwrap();
    let status = answer.status().as_u16();
    let body = answer.json().await.unwrap();
    running.shutdown().await.unwrap();
    (status, body)
}

#[tokio::test]
async fn a_service_is_ready_when_all_it_depends_on_is_there() {
    let (status, body) = ready(vec![dependency("stock", Kind::Required, Ok(()))]).await;
    assert_eq!(status, 200);
    assert_eq!(
        body,
        json!({"ready": true, "draining": false, "dependencies": [{"name": "stock", "kind": "required", "ok": true}]})
    );
}

#[tokio::test]
async fn a_missing_required_dependency_makes_it_unready_and_says_why() {
    let (status, body) = ready(vec![
        dependency("stock", Kind::Required, Err("connection refused")),
        dependency("mail", Kind::Degradable, Ok(())),
    ])
    .await;
    assert_eq!(status, 503);
    assert_eq!(body["ready"], false);
    assert_eq!(body["dependencies"][0]["error"], "connection refused");
    assert_eq!(body["dependencies"][1]["ok"], true);
}

#[tokio::test]
async fn a_missing_degradable_dependency_is_named_and_leaves_it_ready() {
    let (status, body) = ready(vec![dependency("mail", Kind::Degradable, Err("away"))]).await;
    assert_eq!(status, 200);
    assert_eq!(
        body["dependencies"],
        json!([{"name": "mail", "kind": "degradable", "ok": false, "error": "away"}])
    );
}

#[tokio::test]
async fn the_metrics_tell_which_dependency_is_missing_to_who_never_asks_for_readiness() {
    let running = run(
        Common::default(),
        Parts {
            dependencies: vec![
                dependency("ledger", Kind::Required, Ok(())),
                dependency("pager", Kind::Degradable, Err("away")),
            ],
            ..Parts::default()
        },
    )
    .await;
    let url = format!("http://{}/metrics", running.admin_addr);
    let metrics = reqwest::get(url).await.unwrap().text().await.unwrap();
    for (name, kind, value) in [("ledger", "required", "1"), ("pager", "degradable", "0")] {
        let line = format!(r#"service_dependency_up{{dependency="{name}",kind="{kind}"}} {value}"#);
        assert!(metrics.contains(&line), "{line} in\n{metrics}");
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_check_that_hangs_counts_as_missing() {
    let hung = Dependency::new("stock", Kind::Required, || std::future::pending().boxed());
    let (status, body) = ready(vec![hung]).await;
    assert_eq!(status, 503);
    assert!(
        body["dependencies"][0]["error"].as_str().unwrap().contains("no answer"),
        "{body}"
    );
}

#[tokio::test]
async fn questions_asked_at_once_share_one_check() {
    let checks = Arc::new(AtomicUsize::new(0));
    let counted = Dependency::new("stock", Kind::Required, {
        let checks = Arc::clone(&checks);
        move || {
            checks.fetch_add(1, Ordering::Relaxed);
            // Slow enough that all the questions are there before the first answer.
            tokio::time::sleep(std::time::Duration::from_millis(100))
                .map(Ok)
                .boxed()
        }
    });
    let running = run(
        Common::default(),
        Parts {
            dependencies: vec![counted],
            ..Parts::default()
        },
    )
    .await;
    let url = format!("http://{}/readyz", running.admin_addr);
    let answers = futures::future::join_all((0..20).map(|_| reqwest::get(&url))).await;
    assert!(answers.into_iter().all(|answer| answer.unwrap().status() == 200));
    let checks = checks.load(Ordering::Relaxed);
    assert!(checks < 20, "{checks} checks for 20 questions");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn request_durations_are_a_histogram_by_route_in_seconds() {
    let running = serve(Router::new().route("/things/{id}", get(async || "thing"))).await;
    for id in ["1", "2"] {
        let answer = reqwest::get(format!("http://{}/things/{id}", running.http_addr))
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
    }
    let url = format!("http://{}/metrics", running.admin_addr);
    let metrics = reqwest::get(url).await.unwrap().text().await.unwrap();
    let bucket = metrics
        .lines()
        .find(|line| {
            line.starts_with("http_server_request_duration_seconds_bucket")
                && line.contains(r#"http_route="/things/{id}""#)
                && line.contains(r#"le="10""#)
        })
        .unwrap_or_else(|| panic!("no such bucket in {metrics}"));
    assert!(bucket.ends_with(" 2"), "{bucket}");
    for label in [
        r#"http_request_method="GET""#,
        r#"http_response_status_code="200""#,
        r#"url_scheme="http""#,
    ] {
        assert!(bucket.contains(label), "{label} is not in {bucket}");
    }
    assert!(!metrics.contains("/things/1"), "the raw path is a label");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_request_nobody_waits_for_is_counted_as_cancelled() {
    let started = Arc::new(tokio::sync::Notify::new());
    let router = Router::new().route(
        "/forever",
        get({
            let started = Arc::clone(&started);
            async move || {
                started.notify_one();
                std::future::pending::<()>().await;
            }
        }),
    );
    let running = serve(router).await;
    let request = tokio::spawn(reqwest::get(format!("http://{}/forever", running.http_addr)));
    started.notified().await;
    request.abort();
    let url = format!("http://{}/metrics", running.admin_addr);
    let counted = |metrics: &str| {
        metrics.lines().any(|line| {
            line.starts_with("http_server_request_duration_seconds_count")
                && line.contains(r#"http_route="/forever""#)
                && line.contains(r#"error_type="cancelled""#)
        })
    };
    while !counted(&reqwest::get(&url).await.unwrap().text().await.unwrap()) {
        tokio::task::yield_now().await;
    }
    running.shutdown().await.unwrap();
}
