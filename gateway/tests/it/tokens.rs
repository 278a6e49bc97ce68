//! The token check at the edge.

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Edge, EndpointsFile, assert_problem, upstream};

#[tokio::test]
async fn only_a_good_token_reaches_the_service() {
    let counter = upstream::Counter::start().await;
    let edge = Edge::before(&[counter.addr]).await;
    let tours = || edge.anonymous(Method::POST, "/api/v1/tours").body("{}");

    let missing = tours().send().await.expect("answers");
    assert!(missing.headers()["www-authenticate"].as_bytes().starts_with(b"Bearer"));
    assert_problem(missing, 401, "unauthorized").await;
    for (kind, token) in [
        ("forged", edge.issuer.forged()),
        ("expired", edge.issuer.expired()),
        ("garbage", "not.a.token".to_owned()),
    ] {
        let response = tours().bearer_auth(token).send().await.expect("answers");
        let challenge = response.headers()["www-authenticate"]
            .to_str()
            .expect("is ASCII")
            .to_owned();
        assert!(challenge.contains(r#"error="invalid_token""#), "{kind}: {challenge}");
        assert_problem(response, 401, "invalid-token").await;
    }
    assert_eq!(counter.seen(), 0);

    let good = tours().bearer_auth(edge.issuer.token()).send().await.expect("answers");
    assert_eq!(good.status(), 200);
    assert_eq!(counter.seen(), 1);
}

#[tokio::test]
async fn no_byte_of_the_body_is_asked_for_without_a_token() {
    let counter = upstream::Counter::start().await;
    let edge = Edge::before(&[counter.addr]).await;
    let first_line = async |authorization: &str| {
        let mut stream = TcpStream::connect(edge.addr()).await.expect("connects");
        let head = format!(
            "POST /api/v1/tours HTTP/1.1\r\nhost: edge\r\n{authorization}content-length: 5\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sends");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.expect("receives");
        String::from_utf8_lossy(&answer).into_owned()
    };
    assert_eq!(first_line("").await, "HTTP/1.1 401");
    let good = format!("authorization: Bearer {}\r\n", edge.issuer.token());
    assert_eq!(first_line(&good).await, "HTTP/1.1 100");
}

#[tokio::test]
async fn whoever_comes_for_a_token_needs_none_and_everybody_else_does() {
    let user = upstream::Counter::start().await;
    let edge = Edge::start(EndpointsFile::new(&[], &[user.addr])).await;
    for path in [
        "/oauth2/token",
        "/oauth2/introspect",
        "/api/auth/login",
        "/api/auth/register",
    ] {
        let response = edge.anonymous(Method::POST, path).send().await.expect("answers");
        assert_eq!(response.status(), 200, "{path}");
    }
    let passed = user.seen();
    for path in ["/api/users/me", "/api/users/1"] {
        let response = edge.anonymous(Method::GET, path).send().await.expect("answers");
        assert_problem(response, 401, "unauthorized").await;
    }
    assert_eq!(user.seen(), passed);
}
