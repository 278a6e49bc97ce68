//! Headers on their way through.

use reqwest::Method;

use crate::support::{Edge, EndpointsFile, upstream};

#[tokio::test]
async fn headers_of_one_connection_are_not_passed_on_in_either_direction() {
    let edge = Edge::before(&[upstream::echo().await]).await;
    let request = edge
        .request(Method::GET, "/api/v1/tours")
        .header("connection", "x-hop")
        .header("x-hop", "1")
        .header("te", "trailers")
        .header("proxy-authorization", "Basic x")
        .header("x-end-to-end", "1");
    let response = request.send().await.expect("answers");
    let headers = response.headers().clone();
    assert_eq!(headers["x-kept"], "yes");
    assert!(
        !headers.contains_key("keep-alive") && !headers.contains_key("proxy-authenticate"),
        "{headers:?}"
    );

    let text = response.text().await.expect("is text");
    let has = |name: &str| text.lines().any(|line| line.starts_with(&format!("{name}: ")));
    assert!(has("x-end-to-end") && has("authorization"), "{text}");
    for name in ["connection", "x-hop", "te", "proxy-authorization"] {
        assert!(!has(name), "{name} was passed on: {text}");
    }
}

#[tokio::test]
async fn the_service_learns_who_asked_for_what() {
    let upstream = upstream::echo().await;
    let edge = Edge::start(EndpointsFile::new(&[], &[upstream])).await;
    let request = edge
        .anonymous(Method::GET, "/oauth2/jwks")
        .header("x-forwarded-for", "203.0.113.7")
        .header("x-request-id", "request-1")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let response = request.send().await.expect("answers");
    assert_eq!(response.headers()["x-request-id"], "request-1");
    let text = response.text().await.expect("is text");
    for line in [
        "x-forwarded-for: 203.0.113.7, 127.0.0.1".to_owned(),
        "x-forwarded-proto: http".to_owned(),
        format!("x-forwarded-host: {}", edge.addr()),
        format!("host: {upstream}"),
        "x-request-id: request-1".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in {text}");
    }
    assert!(
        text.contains("traceparent: 00-0af7651916cd43dd8448eb211c80319c-"),
        "{text}"
    );
}

#[tokio::test]
async fn a_request_without_an_id_gets_one() {
    let edge = Edge::before(&[upstream::echo().await]).await;
    let response = edge.get("/api/v1/tours").await;
    let id = response.headers()["x-request-id"]
        .to_str()
        .expect("is ASCII")
        .to_owned();
    assert!(uuid::Uuid::parse_str(&id).is_ok(), "{id}");
    assert!(response.text().await.expect("is text").contains(&id));
}
