//! `POST /oauth2/token`

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;

use crate::support::{Database, Issuer, SECRET};

const GRANT: (&str, &str) = ("grant_type", "client_credentials");

async fn send(request: RequestBuilder) -> Response {
    request.send().await.expect("answers")
}

async fn json(response: Response) -> Value {
    response.json().await.expect("is JSON")
}

#[tokio::test]
async fn a_token_validates_against_the_served_keys_and_says_who_may_do_what() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;

    let response = send(issuer.token().basic_auth("load", Some(SECRET)).form(&[GRANT])).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let body = json(response).await;
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 300);
    assert_eq!(body["scope"], "tours:read tours:write");

    let claims = issuer
        .verifier()
        .verify(body["access_token"].as_str().expect("a token"))
        .await
        .expect("verifies");
    assert_eq!(claims.sub, "load");
    assert_eq!(claims.client_id, "load");
    assert_eq!(claims.tenant.as_deref(), Some("BEHNGT"));
    assert_eq!(claims.scopes, ["tours:read", "tours:write"]);
    let left = claims.exp - chrono::Utc::now().timestamp();
    assert!((1..=300).contains(&left), "{left} s left");

    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn credentials_in_the_body_work_and_scopes_narrow() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;

    let form = [
        GRANT,
        ("client_id", "load"),
        ("client_secret", SECRET),
        ("scope", "tours:write"),
    ];
    let body = json(send(issuer.token().form(&form)).await).await;
    assert_eq!(body["scope"], "tours:write");
    let claims = issuer
        .verifier()
        .verify(body["access_token"].as_str().expect("a token"))
        .await
        .expect("verifies");
    assert_eq!(claims.scopes, ["tours:write"]);

    let body = json(send(issuer.token().basic_auth("reader", Some(SECRET)).form(&[GRANT])).await).await;
    let claims = issuer
        .verifier()
        .verify(body["access_token"].as_str().expect("a token"))
        .await
        .expect("verifies");
    assert_eq!(claims.tenant, None);

    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn each_mistake_has_its_own_error_code() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let load = || issuer.token().basic_auth("load", Some(SECRET));
    let wrong_secret = "wrong-secret-0123456789abcdef";

    let cases: Vec<(&str, RequestBuilder, StatusCode, &str)> = vec![
        (
            "no grant type",
            load().form(&[("scope", "tours:read")]),
            StatusCode::BAD_REQUEST,
            "invalid_request",
        ),
        (
            "empty grant type",
            load().form(&[("grant_type", "")]),
            StatusCode::BAD_REQUEST,
            "invalid_request",
        ),
        (
            "another grant",
            load().form(&[("grant_type", "implicit")]),
            StatusCode::BAD_REQUEST,
            "unsupported_grant_type",
        ),
        (
            "a grant that is not for this client",
            load().form(&[("grant_type", "password")]),
            StatusCode::BAD_REQUEST,
            "unauthorized_client",
        ),
        (
            "a client with a NUL in its name",
            issuer
                .token()
                .form(&[GRANT, ("client_id", "lo\0ad"), ("client_secret", SECRET)]),
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        ),
        (
            "a repeated parameter",
            load().form(&[GRANT, GRANT]),
            StatusCode::BAD_REQUEST,
            "invalid_request",
        ),
        (
            "a JSON body",
            load().json(&serde_json::json!({"grant_type": "client_credentials"})),
            StatusCode::BAD_REQUEST,
            "invalid_request",
        ),
        (
            "credentials twice",
            load().form(&[GRANT, ("client_id", "load"), ("client_secret", SECRET)]),
            StatusCode::BAD_REQUEST,
            "invalid_request",
        ),
        (
            "a scope too many",
            load().form(&[GRANT, ("scope", "admin")]),
            StatusCode::BAD_REQUEST,
            "invalid_scope",
        ),
        (
            "a malformed scope",
            load().form(&[GRANT, ("scope", "tours:read  \"x\"")]),
            StatusCode::BAD_REQUEST,
            "invalid_scope",
        ),
        (
            "a client without scopes",
            issuer.token().basic_auth("powerless", Some(SECRET)).form(&[GRANT]),
            StatusCode::BAD_REQUEST,
            "invalid_scope",
        ),
        (
            "no credentials",
            issuer.token().form(&[GRANT]),
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        ),
        (
            "a wrong secret",
            issuer.token().basic_auth("load", Some(wrong_secret)).form(&[GRANT]),
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        ),
        (
            "an unknown client",
            issuer.token().basic_auth("nobody", Some(SECRET)).form(&[GRANT]),
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        ),
        (
            "another scheme",
            issuer.token().bearer_auth("load").form(&[GRANT]),
            StatusCode::UNAUTHORIZED,
            "invalid_client",
        ),
    ];
    for (case, request, status, code) in cases {
        let response = send(request).await;
        assert_eq!(response.status(), status, "{case}");
        let headers = response.headers().clone();
        assert_eq!(headers["content-type"], "application/json", "{case}");
        assert_eq!(headers["cache-control"], "no-store", "{case}");
        let challenged = headers
            .get("www-authenticate")
            .is_some_and(|value| value.as_bytes().starts_with(b"Basic "));
        assert_eq!(challenged, status == StatusCode::UNAUTHORIZED, "{case}");
        let body = json(response).await;
        assert_eq!(body["error"], code, "{case}: {body}");
        let description = body["error_description"].as_str().unwrap_or_default();
        let allowed = |byte: u8| matches!(byte, 0x20 | 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        assert!(
            !description.is_empty() && description.bytes().all(allowed),
            "{case}: {description:?}"
        );
    }

    let get = issuer.get("/oauth2/token").await;
    assert_eq!(get.status(), StatusCode::METHOD_NOT_ALLOWED);

    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_wrong_secret_and_an_unknown_client_get_the_same_answer() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let wrong = json(send(issuer.token().basic_auth("load", Some("x")).form(&[GRANT])).await).await;
    let unknown = json(send(issuer.token().basic_auth("nobody", Some("x")).form(&[GRANT])).await).await;
    assert_eq!(wrong, unknown);
    issuer.stop().await;
    database.drop_it().await;
}
