//! What must stay secret is in nothing the edge prints, exports or answers, whatever passes it.

use axum::extract::Form;
use axum::routing::post;
use axum::{Json, Router};
use reqwest::{Client, Method};
use serde::Deserialize;
use serde_json::json;
use testkit::{Collector, Process, Search};

use crate::support::{EndpointsFile, dead, eventually, issuer, redis, upstream};

const GOOD: &str = "opaque-good-token-0123456789abcdef";
const BAD: &str = "opaque-bad-token-0123456789abcdef";
const CLIENT: &str = "edge-secret-0123456789abcdef";
const PASSED: &str = "passed-secret-0123456789abcdef";
const STORE: &str = "redis-password-0123456789abcdef";

#[derive(Deserialize)]
struct Question {
    token: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_printed_exported_shown_or_sent_back() {
    let answer = async |Form(question): Form<Question>| {
        let active = question.token == GOOD;
        Json(json!({
            "active": active, "iss": issuer::ISSUER, "aud": "rowlock", "client_id": "load", "exp": 9_999_999_999_i64,
        }))
    };
    let asked = upstream::serve(Router::new().route("/introspect", post(answer))).await;
    let counter = upstream::Counter::start().await;
    let endpoints = EndpointsFile::new(&[counter.addr], &[dead().await]);
    let collector = Collector::start().await;
    // Not the password of the test server, so that using Redis fails with it at hand.
    let server = redis();
    let address = server
        .rsplit(['@', '/'])
        .find(|part| part.contains(':'))
        .expect("an address");
    let store = format!("redis://:{STORE}@{address}");
    let process = Process::serve(
        env!("CARGO_BIN_EXE_gateway"),
        &[
            ("GATEWAY_ENDPOINTS_FILE", &endpoints.path()),
            ("GATEWAY_AUTH_ISSUER", issuer::ISSUER),
            ("GATEWAY_AUTH_CHECK", "introspection"),
            ("GATEWAY_AUTH_INTROSPECTION_URL", &format!("http://{asked}/introspect")),
            ("GATEWAY_AUTH_CLIENT_ID", "edge"),
            ("GATEWAY_AUTH_CLIENT_SECRET", CLIENT),
            ("GATEWAY_REDIS_URL", &store),
            ("GATEWAY_RATE_LIMIT", "1000"),
            ("GATEWAY_RATE_LIMIT_WITHOUT_REDIS", "open"),
            ("GATEWAY_BODY_LIMIT", "1000"),
            ("GATEWAY_LOG", "trace"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
        ],
    );
    let mut search = Search::default();
    for (what, value) in [
        ("good token", GOOD),
        ("bad token", BAD),
        ("client secret", CLIENT),
        ("secret on its way to the issuer", PASSED),
        ("password of Redis", STORE),
    ] {
        search.secret(what, value);
    }
    let http = Client::builder().no_proxy().build().expect("a client");
    let request = |method: Method, path: &str| http.request(method, format!("http://{}{path}", process.http));
    let tours = || request(Method::POST, "/api/v1/tours");

    eventually("the edge answers", async || {
        let good = tours().bearer_auth(GOOD).body("{}").send().await;
        good.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    search.refused("a bad token", tours().bearer_auth(BAD)).await;
    search
        .refused("a token twice", tours().bearer_auth(GOOD).bearer_auth(BAD))
        .await;
    search
        .refused("a password", tours().basic_auth("load", Some(PASSED)))
        .await;
    let in_the_url = request(Method::GET, &format!("/api/v1/tours?access_token={BAD}"));
    search.refused("a token in the query", in_the_url).await;
    let too_long = tours().bearer_auth(GOOD).body(PASSED.repeat(100));
    search.refused("a body over the limit", too_long).await;
    let to_nobody = request(Method::POST, "/oauth2/token")
        .basic_auth("load", Some(PASSED))
        .body(format!("grant_type=password&password={PASSED}"));
    search
        .refused("credentials for an issuer that is away", to_nobody)
        .await;
    search
        .refused("a path to nowhere", request(Method::GET, "/nowhere").bearer_auth(GOOD))
        .await;

    search.end(&http, process, &collector).await;
    search.expect("the telemetry", "/oauth2/");
    search.expect("the log", "without Redis");
    search.expect("/config", "auth_client_secret");
    search.assert_hidden();
}
