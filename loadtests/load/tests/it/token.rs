//! Bearer tokens: shared or one a request, in or out of the latency.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get as on_get, post as on_post};
use load::{Token, TokenSource};

use crate::support::{MS, closed, errors, get, limited, run, serve, url};

/// Grants numbered tokens and remembers when.
struct Issuer {
    life: u64,
    takes: Duration,
    granted: Mutex<Vec<Instant>>,
    served: AtomicU64,
    expired: AtomicU64,
}

impl Issuer {
    fn new(life: u64, takes: Duration) -> Arc<Self> {
        let (granted, served, expired) = (Mutex::default(), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self {
            life,
            takes,
            granted,
            served,
            expired,
        })
    }

    fn granted(&self) -> usize {
        self.granted.lock().unwrap().len()
    }
}

async fn grant(State(issuer): State<Arc<Issuer>>, form: String) -> Response {
    if form != "grant_type=client_credentials&client_id=rowlock-load&client_secret=s%26cret" {
        return (StatusCode::UNAUTHORIZED, r#"{"error":"invalid_client"}"#).into_response();
    }
    tokio::time::sleep(issuer.takes).await;
    let mut granted = issuer.granted.lock().unwrap();
    granted.push(Instant::now());
    let (number, life) = (granted.len() - 1, issuer.life);
    format!(r#"{{"access_token":"token-{number}","token_type":"Bearer","expires_in":{life}}}"#).into_response()
}

async fn resource(State(issuer): State<Arc<Issuer>>, headers: HeaderMap) -> StatusCode {
    issuer.served.fetch_add(1, Ordering::SeqCst);
    let bearer = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let number = bearer
        .strip_prefix("Bearer token-")
        .and_then(|number| number.parse::<usize>().ok());
    let Some(number) = number else {
        return StatusCode::UNAUTHORIZED;
    };
    if issuer.granted.lock().unwrap()[number].elapsed() > Duration::from_secs(issuer.life) {
        issuer.expired.fetch_add(1, Ordering::SeqCst);
    }
    StatusCode::OK
}

async fn start(issuer: &Arc<Issuer>) -> SocketAddr {
    let router = axum::Router::new()
        .route("/", on_get(resource))
        .route("/oauth2/token", on_post(grant));
    serve(router.with_state(Arc::clone(issuer))).await
}

fn source(address: SocketAddr, secret: &str) -> TokenSource {
    TokenSource {
        url: url(address, "/oauth2/token"),
        client_id: "rowlock-load".into(),
        client_secret: secret.into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_serves_all_users_and_stays_out_of_the_latency() {
    let issuer = Issuer::new(300, 200 * MS);
    let address = start(&issuer).await;
    // The token's header takes the place of this one.
    let target = get(address)
        .header("authorization", "Basic bWU6")
        .token(Token::Once(source(address, "s&cret")))
        .build()
        .unwrap();
    let summary = run(target, &limited(10, 300)).await;
    assert_eq!((errors(&summary), summary.ok, issuer.granted()), (vec![], 300, 1));
    assert!(summary.latency_ms(0.5) < 200.0, "{}", summary.latency_ms(0.5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_longer_than_any_clock_is_a_long_one() {
    let issuer = Issuer::new(u64::MAX, Duration::ZERO);
    let address = start(&issuer).await;
    let target = get(address)
        .token(Token::Once(source(address, "s&cret")))
        .build()
        .unwrap();
    let summary = run(target, &limited(2, 10)).await;
    assert_eq!((errors(&summary), summary.ok, issuer.granted()), (vec![], 10, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_token_is_replaced_before_it_expires_by_one_user() {
    let issuer = Issuer::new(1, Duration::ZERO);
    let address = start(&issuer).await;
    let target = get(address)
        .token(Token::Once(source(address, "s&cret")))
        .build()
        .unwrap();
    let summary = run(target, &closed(10, 3000 * MS).think(5 * MS)).await;
    assert_eq!((errors(&summary), issuer.expired.load(Ordering::SeqCst)), (vec![], 0));
    assert!(
        (3..=5).contains(&issuer.granted()),
        "{} tokens in 3 s, each for 0.8 s",
        issuer.granted()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_an_iteration_is_in_the_latency_only_when_asked() {
    for timed in [true, false] {
        let issuer = Issuer::new(300, 100 * MS);
        let address = start(&issuer).await;
        let token = Token::PerIteration {
            source: source(address, "s&cret"),
            timed,
        };
        let summary = run(get(address).token(token).build().unwrap(), &limited(3, 30)).await;
        assert_eq!((errors(&summary), summary.ok, issuer.granted()), (vec![], 30, 30));
        assert_eq!(issuer.served.load(Ordering::SeqCst), 30);
        assert_eq!(
            summary.latency_ms(0.0) >= 100.0,
            timed,
            "{} ms",
            summary.latency_ms(0.0)
        );
        assert!(summary.cycle_mean_s >= 0.1, "the whole iteration has it either way");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_iteration_without_its_token_fails_as_such_and_sends_no_request() {
    let issuer = Issuer::new(300, Duration::ZERO);
    let address = start(&issuer).await;
    let wrong = source(address, "wrong");
    for token in [
        Token::Once(wrong.clone()),
        Token::PerIteration {
            source: wrong,
            timed: true,
        },
    ] {
        let summary = run(get(address).token(token).build().unwrap(), &limited(2, 6)).await;
        assert_eq!(errors(&summary), [("token", 6)]);
        assert!(
            summary.failures["token"].contains("invalid_client"),
            "{:?}",
            summary.failures
        );
    }
    assert_eq!(issuer.served.load(Ordering::SeqCst), 0);
}
