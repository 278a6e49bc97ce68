//! Tokens checked by asking the issuer (RFC 7662), and the short cache in front of either check.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Form, Router, body::Bytes, extract::State, http::HeaderMap, response::IntoResponse, routing::post};
use base64::{Engine, engine::general_purpose::STANDARD};
use chassis::{
    auth::{AuthConfig, AuthError, Verifier},
    config::parse_from,
    problem::Problem,
};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Issuer, Key, now, with};

const ISSUER: &str = "http://issuer.test";
const SECRET: &str = "s3cret:with/odd characters";

/// An introspection endpoint that gives one answer and counts how often it is asked.
#[derive(Clone)]
struct Endpoint {
    answer: Arc<Mutex<(StatusCode, Bytes)>>,
    asked: Arc<AtomicUsize>,
    url: String,
}

#[derive(serde::Deserialize)]
struct Question {
    token: String,
}

impl Endpoint {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = Self {
            answer: Arc::new(Mutex::new((StatusCode::OK, Bytes::new()))),
            asked: Arc::default(),
            url: format!("http://{}/introspect", listener.local_addr().expect("bound")),
        };
        endpoint.says(&active());
        let router = Router::new()
            .route("/introspect", post(Self::asked))
            .with_state(endpoint.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        endpoint
    }

    async fn asked(State(this): State<Self>, headers: HeaderMap, Form(question): Form<Question>) -> impl IntoResponse {
        this.asked.fetch_add(1, Ordering::SeqCst);
        // Form-encoded before they go into the Basic scheme (RFC 6749, section 2.3.1).
        let credentials = STANDARD.encode("the%3Aedge:s3cret%3Awith%2Fodd+characters");
        assert_eq!(headers["authorization"], format!("Basic {credentials}"));
        assert_eq!(question.token, "opaque-token");
        this.answer.lock().expect("not poisoned").clone()
    }

    fn says(&self, answer: &Value) {
        self.answers(StatusCode::OK, answer.to_string());
    }

    fn answers(&self, status: StatusCode, body: String) {
        *self.answer.lock().expect("not poisoned") = (status, body.into());
    }

    fn count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn verifier(&self, more: &[(&str, &str)]) -> Verifier {
        Verifier::new(&config(&self.url, more)).expect("a good configuration")
    }
}

fn config(url: &str, more: &[(&str, &str)]) -> AuthConfig {
    let pairs = [
        ("IT_AUTH_ISSUER", ISSUER),
        ("IT_AUTH_CHECK", "introspection"),
        ("IT_AUTH_INTROSPECTION_URL", url),
        ("IT_AUTH_CLIENT_ID", "the:edge"),
        ("IT_AUTH_CLIENT_SECRET", SECRET),
    ];
    parse_from("it", &[&pairs, more].concat()).expect("a good configuration")
}

fn active() -> Value {
    json!({
        "active": true, "scope": "tours:read", "client_id": "app", "sub": "ada", "tenant": "BEHNGT",
        "iss": ISSUER, "aud": "rowlock", "exp": now() + 300, "token_type": "Bearer",
    })
}

#[tokio::test]
async fn what_the_issuer_says_of_an_active_token_is_who_calls() {
    let endpoint = Endpoint::start().await;
    let verifier = endpoint.verifier(&[]);
    let claims = verifier.verify("opaque-token").await.expect("a good token");
    assert_eq!((claims.sub.as_str(), claims.client_id.as_str()), ("ada", "app"));
    assert_eq!(
        (claims.tenant.as_deref(), claims.scopes.join(" ").as_str()),
        (Some("BEHNGT"), "tours:read")
    );
    assert_eq!(endpoint.count(), 1);
    assert!(verifier.verify("opaque-token").await.is_ok());
    assert_eq!(endpoint.count(), 2, "each time anew, unless it is told otherwise");

    endpoint.says(&with(active(), "aud", json!(["elsewhere", "rowlock"])));
    assert!(verifier.verify("opaque-token").await.is_ok(), "one audience of several");
    endpoint.says(&json!({"active": true, "client_id": "app", "aud": "rowlock", "exp": now() + 300}));
    let claims = verifier
        .verify("opaque-token")
        .await
        .expect("what need not be said need not be said");
    assert_eq!((claims.sub.as_str(), claims.tenant), ("app", None));
}

#[tokio::test]
async fn an_answer_that_does_not_let_in_lets_nobody_in() {
    let endpoint = Endpoint::start().await;
    let verifier = endpoint.verifier(&[]);
    for (what, answer) in [
        ("inactive", json!({"active": false})),
        ("inactive, with claims", with(active(), "active", json!(false))),
        ("nearly active", with(active(), "active", json!("true"))),
        ("no word about it", with(active(), "active", Value::Null)),
        ("a refresh token", with(active(), "token_type", json!("refresh_token"))),
        ("another issuer", with(active(), "iss", json!("http://elsewhere"))),
        ("another audience", with(active(), "aud", json!("elsewhere"))),
        ("no audience", with(active(), "aud", Value::Null)),
        ("no client", with(active(), "client_id", Value::Null)),
        ("no expiry", with(active(), "exp", Value::Null)),
        ("an odd tenant", with(active(), "tenant", json!({"key": "BEHNGT"}))),
    ] {
        endpoint.says(&answer);
        let outcome = verifier.verify("opaque-token").await;
        assert!(
            matches!(outcome, Err(AuthError::InvalidToken(_))),
            "{what}: {outcome:?}"
        );
    }
    let asked = endpoint.count();
    for token in ["", "two words", "ümläut", "nul\0", "a=b", &"x".repeat(9000)] {
        let outcome = verifier.verify(token).await;
        assert!(
            matches!(outcome, Err(AuthError::InvalidToken(_))),
            "{token:.20}: {outcome:?}"
        );
    }
    assert_eq!(endpoint.count(), asked, "what can be no token is not asked about");
}

#[tokio::test]
async fn without_an_answer_nobody_gets_in_and_everybody_is_told_to_come_back() {
    let endpoint = Endpoint::start().await;
    let unavailable = async |verifier: &Verifier, what: &str| {
        let started = Instant::now();
        match verifier.verify("opaque-token").await {
            Err(error @ AuthError::IssuerUnavailable(_)) => {
                assert!(started.elapsed() < Duration::from_secs(30), "{what}");
                assert!(!error.to_string().contains("s3cret"), "{error}");
                let answer = Problem::from(error).into_response();
                assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{what}");
                assert_eq!(answer.headers()["retry-after"], "1", "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    };
    let verifier = endpoint.verifier(&[]);
    for (what, status, body) in [
        (
            "our credentials are refused",
            StatusCode::UNAUTHORIZED,
            r#"{"error":"invalid_client"}"#.to_owned(),
        ),
        ("it fails", StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        (
            "it sends us elsewhere",
            StatusCode::TEMPORARY_REDIRECT,
            active().to_string(),
        ),
        ("no JSON", StatusCode::OK, "<html>".to_owned()),
        ("no object", StatusCode::OK, "true".to_owned()),
        ("no end", StatusCode::OK, format!("{}{}", " ".repeat(70_000), active())),
    ] {
        endpoint.answers(status, body);
        unavailable(&verifier, what).await;
    }
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", silent.local_addr().expect("bound"));
    let mute = Verifier::new(&config(&url, &[])).expect("a good configuration");
    unavailable(&mute, "it never answers").await;
    drop(silent);
    unavailable(&mute, "nobody is there").await;
    endpoint.says(&active());
    assert!(verifier.verify("opaque-token").await.is_ok(), "and it is back");
}

#[tokio::test]
async fn the_endpoint_may_be_the_one_that_discovery_names() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let pairs = [
        ("IT_AUTH_ISSUER", issuer.url.as_str()),
        ("IT_AUTH_CHECK", "introspection"),
        ("IT_AUTH_CLIENT_ID", "edge"),
        ("IT_AUTH_CLIENT_SECRET", SECRET),
    ];
    let verifier = Verifier::new(&parse_from("it", &pairs).expect("good")).expect("good");
    match verifier.verify("opaque-token").await {
        Err(AuthError::IssuerUnavailable(reason)) => assert!(reason.contains("auth_introspection_url"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_good_token_is_kept_for_the_configured_time_and_a_bad_one_never() {
    let endpoint = Endpoint::start().await;
    let verifier = endpoint.verifier(&[("IT_AUTH_CACHE", "1h")]);
    endpoint.says(&json!({"active": false}));
    for asked in 1..=2 {
        assert!(verifier.verify("opaque-token").await.is_err());
        assert_eq!(endpoint.count(), asked);
    }
    endpoint.says(&active());
    assert!(verifier.verify("opaque-token").await.is_ok());
    endpoint.says(&json!({"active": false}));
    let kept = verifier.verify("opaque-token").await.expect("kept");
    assert_eq!((kept.tenant.as_deref(), endpoint.count()), (Some("BEHNGT"), 3));

    // Never beyond its expiry.
    endpoint.says(&with(active(), "exp", json!(now() + 1)));
    let short = endpoint.verifier(&[("IT_AUTH_CACHE", "1h")]);
    assert!(short.verify("opaque-token").await.is_ok());
    endpoint.says(&json!({"active": false}));
    let deadline = Instant::now() + Duration::from_secs(30);
    while short.verify("opaque-token").await.is_ok() {
        assert!(Instant::now() < deadline, "kept beyond its expiry");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_check_by_keys_can_keep_tokens_as_well() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let pairs = [("IT_AUTH_ISSUER", issuer.url.as_str()), ("IT_AUTH_CACHE", "1h")];
    let verifier = Verifier::new(&parse_from("it", &pairs).expect("good")).expect("good");
    let good = key.sign("k1", "at+jwt", &issuer.claims());
    for _ in 0..2 {
        assert_eq!(
            verifier.verify(&good).await.expect("good").tenant.as_deref(),
            Some("BEHNGT")
        );
    }
    // Kept is one token, not whatever resembles it.
    let stranger = Key::generate("k1").sign("k1", "at+jwt", &issuer.claims());
    let (head, _) = good.rsplit_once('.').expect("three parts");
    let (_, other_signature) = stranger.rsplit_once('.').expect("three parts");
    for forged in [stranger.clone(), format!("{head}.{other_signature}"), head.to_owned()] {
        assert!(matches!(
            verifier.verify(&forged).await,
            Err(AuthError::InvalidToken(_))
        ));
    }
}

#[test]
fn credentials_are_needed_to_ask_and_shown_to_nobody() {
    let error = |pairs: &[(&str, &str)]| {
        let config: AuthConfig = parse_from("it", pairs).expect("each value is good by itself");
        Verifier::new(&config).err().expect("refused").to_string()
    };
    let issuer = ("IT_AUTH_ISSUER", ISSUER);
    let asking = ("IT_AUTH_CHECK", "introspection");
    for pairs in [&[issuer, asking][..], &[issuer, asking, ("IT_AUTH_CLIENT_ID", "edge")]] {
        let text = error(pairs);
        assert!(text.contains("auth_client_secret"), "{text}");
    }
    let text = error(&[issuer, ("IT_AUTH_JWKS_URL", "http://edge:s3cret@127.0.0.1/keys")]);
    assert!(text.contains("auth_jwks_url") && !text.contains("s3cret"), "{text}");

    let shown = config("http://127.0.0.1:1/", &[]);
    let shown = format!("{shown:?} {}", serde_json::to_string(&shown).expect("JSON"));
    assert!(shown.contains("[redacted]") && !shown.contains("s3cret"), "{shown}");
}
