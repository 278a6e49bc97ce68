//! Errors as clients see them.

use axum::Router;
use axum::routing::{get, post};
use chassis::problem::{Json, Path, Problem, Query};
use http::StatusCode;
use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::service::serve;

#[derive(Deserialize, Serialize)]
struct Order {
    items: Vec<Item>,
}

#[derive(Deserialize, Serialize)]
struct Item {
    #[serde(rename = "a/b")]
    count: u32,
}

#[derive(Deserialize)]
struct Page {
    size: u8,
}

fn router() -> Router {
    Router::new()
        .route("/orders", post(async |Json(order): Json<Order>| Json(order)))
        .route("/orders/{number}", get(async |Path(number): Path<u32>| Json(number)))
        .route("/page", get(async |Query(page): Query<Page>| Json(page.size)))
        .route(
            "/panic",
            get(async || {
                if true {
                    panic!("the password is hunter2")
                }
            }),
        )
        .route("/broken", get(async || Problem::internal("the password is hunter2")))
        .route(
            "/busy",
            get(async || {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Busy")
                    .detail("Come back later.")
                    .retry_after(std::time::Duration::from_millis(1500))
            }),
        )
}

async fn problem(answer: Response, status: u16) -> Value {
    assert_eq!(answer.status(), status);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["status"], status);
    problem
}

#[tokio::test]
async fn a_body_with_a_wrong_field_is_answered_with_its_json_pointer() {
    let running = serve(router()).await;
    let url = format!("http://{}/orders", running.http_addr);
    let body = json!({"items": [{"a/b": 1}, {"a/b": "two"}]});
    let answer = Client::new().post(&url).json(&body).send().await.unwrap();
    let wrong = problem(answer, 422).await;
    assert_eq!(wrong["type"], "urn:rowlock:problem:invalid-body");
    assert_eq!(wrong["pointer"], "/items/1/a~1b");
    assert!(wrong["detail"].as_str().unwrap().contains("two"), "{wrong}");

    let missing = problem(
        Client::new()
            .post(&url)
            .json(&json!({"items": [{}]}))
            .send()
            .await
            .unwrap(),
        422,
    )
    .await;
    assert_eq!(missing["pointer"], "/items/0");
    assert!(missing["detail"].as_str().unwrap().contains("a/b"), "{missing}");

    let good = json!({"items": [{"a/b": 1}]});
    let answer: Value = Client::new()
        .post(&url)
        .json(&good)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(answer, good);
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let running = serve(router()).await;
    let post = || Client::new().post(format!("http://{}/orders", running.http_addr));
    let json = |body: &'static str| post().header("content-type", "application/json").body(body);
    let cut = problem(json(r#"{"items": ["#).send().await.unwrap(), 400).await;
    assert_eq!(cut["type"], "urn:rowlock:problem:malformed-json");
    let trailing = problem(json(r#"{"items": []} x"#).send().await.unwrap(), 400).await;
    assert_eq!(trailing["type"], "urn:rowlock:problem:malformed-json");
    problem(post().body(r#"{"items": []}"#).send().await.unwrap(), 415).await;
    let large = post()
        .header("content-type", "application/json")
        .body(vec![b' '; 3 << 20]);
    let large = problem(large.send().await.unwrap(), 413).await;
    assert_eq!(large["type"], "urn:rowlock:problem:body-too-large");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_serde_alone_would_let_pass_or_not_locate_is_refused_at_its_place() {
    let running = serve(router()).await;
    let url = format!("http://{}/orders", running.http_addr);
    for (body, status, pointer) in [
        // The pointer is to the object; which of its members is there twice stands in the text.
        (r#"{"items":[{"a/b":1,"a/b":2}]}"#, 422, "/items/0"),
        (r#"{"items":[{"a/b":1,"a\u002fb":2}]}"#, 422, "/items/0"),
        (r#"{"items":[],"items":[]}"#, 422, ""),
        (r#"{"items":[{"a/b":1},{"a/b":1e999}]}"#, 400, "/items/1/a~1b"),
        (r#"{"items":[{"a/b":"\ud800"}]}"#, 400, "/items/0/a~1b"),
        (r#"{"items":[{"a/b":4294967296}]}"#, 422, "/items/0/a~1b"),
        (r#"{"items":[{"a/b":1}"#, 400, "/items"),
        ("", 400, ""),
    ] {
        let request = Client::new().post(&url).header("content-type", "application/json");
        let told = problem(request.body(body).send().await.unwrap(), status).await;
        assert_eq!(told["pointer"], pointer, "{body}: {told}");
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn path_and_query_that_cannot_be_read_are_problems() {
    let running = serve(router()).await;
    for (path, kind) in [
        ("orders/many", "invalid-path"),
        ("orders/%ff", "invalid-path"),
        ("page", "invalid-query"),
        ("page?size=256", "invalid-query"),
        ("page?size=1&size=2", "invalid-query"),
    ] {
        let answer = reqwest::get(format!("http://{}/{path}", running.http_addr))
            .await
            .unwrap();
        let told = problem(answer, 400).await;
        assert_eq!(told["type"], format!("urn:rowlock:problem:{kind}"), "{path}: {told}");
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_panic_or_an_internal_error_is_a_500_that_tells_nothing_and_the_service_lives_on() {
    let running = serve(router()).await;
    for path in ["panic", "broken", "panic"] {
        let answer = reqwest::get(format!("http://{}/{path}", running.http_addr))
            .await
            .unwrap();
        let told = problem(answer, 500).await;
        assert_eq!(told["type"], "urn:rowlock:problem:internal");
        assert!(!told.to_string().contains("hunter2"), "{told}");
    }
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_path_or_method_that_does_not_exist_is_a_problem() {
    let running = serve(router()).await;
    let nowhere = reqwest::get(format!("http://{}/nowhere", running.http_addr))
        .await
        .unwrap();
    assert_eq!(problem(nowhere, 404).await["type"], "urn:rowlock:problem:not-found");
    let answer = reqwest::get(format!("http://{}/orders", running.http_addr))
        .await
        .unwrap();
    assert_eq!(answer.headers()["allow"], "POST");
    assert_eq!(
        problem(answer, 405).await["type"],
        "urn:rowlock:problem:method-not-allowed"
    );
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_time_to_wait_is_rounded_up_to_seconds() {
    let running = serve(router()).await;
    let answer = reqwest::get(format!("http://{}/busy", running.http_addr))
        .await
        .unwrap();
    assert_eq!(answer.headers()["retry-after"], "2");
    assert_eq!(problem(answer, 503).await["detail"], "Come back later.");
    running.shutdown().await.unwrap();
}
