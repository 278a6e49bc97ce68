//! Which path goes where.

use axum::Router;
use reqwest::Method;

use crate::support::{Edge, EndpointsFile, assert_problem, upstream};

#[tokio::test]
async fn each_path_goes_to_its_service() {
    let user = upstream::serve(Router::new().fallback(async || "user")).await;
    let tour_data = upstream::serve(Router::new().fallback(async || "tour-data")).await;
    let edge = Edge::start(EndpointsFile::new(&[tour_data], &[user])).await;
    for (method, path, service) in [
        (Method::POST, "/oauth2/token", "user"),
        (Method::GET, "/.well-known/openid-configuration", "user"),
        (Method::POST, "/api/auth/login", "user"),
        (Method::GET, "/api/users/me", "user"),
        (Method::POST, "/api/v1/tours", "tour-data"),
        (Method::GET, "/api/v1/tenants/BEHNGT", "tour-data"),
    ] {
        let answer = edge.request(method, path).send().await.expect("answers");
        assert_eq!(answer.text().await.expect("is text"), service, "{path}");
    }
}

#[tokio::test]
async fn path_and_query_arrive_as_they_were_sent() {
    let edge = Edge::before(&[upstream::echo().await]).await;
    let text = edge
        .get("/api/v1/tours/a%2Fb?tenant=BEHNGT&after=%20x")
        .await
        .text()
        .await
        .expect("is text");
    assert!(
        text.starts_with("GET /api/v1/tours/a%2Fb?tenant=BEHNGT&after=%20x\n"),
        "{text}"
    );
}

#[tokio::test]
async fn an_unknown_route_is_a_problem_and_asks_no_service() {
    let counter = upstream::Counter::start().await;
    let edge = Edge::before(&[counter.addr]).await;
    for path in ["/", "/api/v2/tours", "/metrics", "/api/v1"] {
        assert_problem(edge.get(path).await, 404, "not-found").await;
    }
    assert_eq!(counter.seen(), 0);
}

#[tokio::test]
async fn readiness_does_not_depend_on_services() {
    let edge = Edge::before(&[]).await;
    assert_eq!(edge.admin("/readyz").await.status(), 200);
}

#[tokio::test]
async fn metrics_name_the_route_and_never_the_path() {
    let edge = Edge::before(&[upstream::echo().await]).await;
    assert_eq!(edge.get("/api/v1/tours/0192f0c1-secret-id").await.status(), 200);
    let text = edge.admin("/metrics").await.text().await.expect("is text");
    // Other tests of this process have metrics of other routes.
    let named = text.lines().any(|line| {
        line.starts_with("http_client_request_duration_seconds_bucket")
            && line.contains(r#"url_template="/api/v1/{*rest}""#)
    });
    assert!(named, "no client metric of the route in {text}");
    assert!(!text.contains("0192f0c1-secret-id"));
}
