//! The token check at the edge by asking the issuer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::routing::post;
use axum::{Json, Router};
use reqwest::Method;
use serde_json::json;

use crate::support::{Edge, EndpointsFile, assert_problem, dead, issuer, upstream};

fn settings(url: &str) -> [(&str, &str); 4] {
    [
        ("GATEWAY_AUTH_CHECK", "introspection"),
        ("GATEWAY_AUTH_INTROSPECTION_URL", url),
        ("GATEWAY_AUTH_CLIENT_ID", "edge"),
        ("GATEWAY_AUTH_CLIENT_SECRET", "edge-secret"),
    ]
}

#[tokio::test]
async fn a_token_gets_in_as_long_as_its_issuer_calls_it_active() {
    let active = Arc::new(AtomicBool::new(true));
    let said = Arc::clone(&active);
    let answer = async move || {
        Json(if said.load(Ordering::SeqCst) {
            let exp = 9_999_999_999_i64;
            json!({"active": true, "iss": issuer::ISSUER, "aud": "rowlock", "client_id": "load", "exp": exp})
        } else {
            json!({"active": false})
        })
    };
    let endpoint = upstream::serve(Router::new().route("/introspect", post(answer))).await;
    let counter = upstream::Counter::start().await;
    let url = format!("http://{endpoint}/introspect");
    let edge = Edge::start_with(EndpointsFile::new(&[counter.addr], &[]), &settings(&url)).await;
    let tours = || {
        edge.anonymous(Method::POST, "/api/v1/tours")
            .bearer_auth("opaque-token")
    };

    assert_eq!(tours().send().await.expect("answers").status(), 200);
    active.store(false, Ordering::SeqCst);
    assert_problem(tours().send().await.expect("answers"), 401, "invalid-token").await;
    assert_eq!(counter.seen(), 1, "the revoked one reached no service");
    let shown = edge.admin("/config").await.text().await.expect("is text");
    assert!(
        shown.contains("auth_client_secret") && !shown.contains("edge-secret"),
        "{shown}"
    );
}

#[tokio::test]
async fn while_the_issuer_is_away_nobody_gets_in_and_is_told_when_to_come_back() {
    let counter = upstream::Counter::start().await;
    let url = format!("http://{}/introspect", dead().await);
    let edge = Edge::start_with(EndpointsFile::new(&[counter.addr], &[]), &settings(&url)).await;
    let response = edge.get("/api/v1/tours").await;
    assert!(response.headers().contains_key("retry-after"));
    assert_problem(response, 503, "issuer-unavailable").await;
    assert_eq!(counter.seen(), 0);
}
