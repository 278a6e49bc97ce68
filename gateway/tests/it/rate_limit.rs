//! The rate limit, with a real Redis, with none, and with one that says nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use chassis::config::Common;
use chassis::service::StartError;
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use crate::support::issuer::Issuer;
use crate::support::upstream::Counter;
use crate::support::{Edge, EndpointsFile, assert_problem, dead, eventually, redis, try_start};

/// Limited to `limit` requests a minute; `more` can change the rest.
async fn limited(upstream: SocketAddr, limit: &str, redis: &str, more: &[(&str, &str)]) -> Edge {
    let settings = [
        ("GATEWAY_RATE_LIMIT", limit),
        ("GATEWAY_REDIS_URL", redis),
        // A busy machine must not look like a Redis that is away.
        ("GATEWAY_RATE_LIMIT_TIMEOUT", "10s"),
    ];
    let settings = [&settings, more].concat();
    Edge::start_with(EndpointsFile::new(&[upstream], &[upstream]), &settings).await
}

async fn get_as(edge: &Edge, subject: &str) -> Response {
    let token = edge.issuer.token_of(subject);
    let request = edge.anonymous(Method::GET, "/api/v1/tours").bearer_auth(token);
    request.send().await.expect("answers")
}

/// `r` and `t` of the header `RateLimit`, whose policy must be `policy`.
fn quota(response: &Response, policy: &str) -> (u64, u64) {
    let text = response.headers()["ratelimit"].to_str().expect("ASCII");
    let members = text.strip_prefix(&format!("\"{policy}\";r=")).expect("the policy");
    let (remaining, reset) = members.split_once(";t=").expect("both members");
    (remaining.parse().expect("a number"), reset.parse().expect("a number"))
}

#[tokio::test]
async fn replicas_share_a_quota_that_is_each_subjects_own_and_say_what_is_left() {
    let upstream = Counter::start().await;
    for policy in ["fixed-window", "gcra"] {
        let algorithm = [("GATEWAY_RATE_LIMIT_ALGORITHM", policy)];
        let edges = [
            limited(upstream.addr, "4", &redis(), &algorithm).await,
            limited(upstream.addr, "4", &redis(), &algorithm).await,
        ];
        // Once more if the minute turned meanwhile, which gives the fixed window a new quota.
        let answers = loop {
            let subject = Uuid::new_v4().to_string();
            let mut answers = Vec::new();
            for turn in 0..6 {
                answers.push(get_as(&edges[turn % 2], &subject).await);
            }
            let resets: Vec<u64> = answers.iter().map(|answer| quota(answer, policy).1).collect();
            if policy == "gcra" || resets.is_sorted_by(|earlier, later| earlier >= later) {
                break answers;
            }
        };
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status().as_u16()).collect();
        assert_eq!(statuses, [200, 200, 200, 200, 429, 429], "{policy}");
        let left: Vec<u64> = answers.iter().map(|answer| quota(answer, policy).0).collect();
        assert_eq!(left, [3, 2, 1, 0, 0, 0], "{policy}");
        for answer in answers {
            assert_eq!(answer.headers()["ratelimit-policy"], format!("\"{policy}\";q=4;w=60"));
            assert!((1..=60).contains(&quota(&answer, policy).1));
            if answer.status() == 429 {
                let wait = answer.headers()["retry-after"].to_str().expect("ASCII").parse::<u64>();
                assert!((1..=60).contains(&wait.expect("seconds")), "{policy}");
                assert_problem(answer, 429, "rate-limited").await;
            }
        }
        assert_eq!(get_as(&edges[0], &Uuid::new_v4().to_string()).await.status(), 200);
    }
}

#[tokio::test]
async fn what_gcra_has_refused_passes_when_its_time_has_come() {
    let upstream = Counter::start().await;
    // One a tenth of a second, after a burst of 600.
    let algorithm = [("GATEWAY_RATE_LIMIT_ALGORITHM", "gcra")];
    let edge = limited(upstream.addr, "600", &redis(), &algorithm).await;
    let subject = Uuid::new_v4().to_string();
    let mut passed = 0;
    while get_as(&edge, &subject).await.status() == 200 {
        passed += 1;
        assert!(passed < 6000, "the limit never held");
    }
    assert!(passed >= 600, "{passed}");
    eventually("the next one passes", async || {
        get_as(&edge, &subject).await.status() == 200
    })
    .await;
}

#[tokio::test]
async fn without_a_token_the_clients_address_counts_and_what_verifiers_ask_for_does_not() {
    let upstream = Counter::start().await;
    let settings = [
        ("GATEWAY_TRUSTED_PROXIES", "1"),
        ("GATEWAY_RATE_LIMIT_ALGORITHM", "gcra"),
    ];
    let edge = limited(upstream.addr, "1", &redis(), &settings).await;
    let get = async |path: &str, client: &str| {
        // The first entry is what a client that wants a new quota would write by itself.
        let forwarded = format!("{}, {client}", Uuid::new_v4());
        let request = edge.anonymous(Method::POST, path).header("x-forwarded-for", forwarded);
        request.send().await.expect("answers").status().as_u16()
    };
    let client = || format!("fd00::{:x}", Uuid::new_v4().as_fields().0 >> 16);
    let (one, other) = (client(), client());
    assert_eq!(get("/oauth2/token", &one).await, 200);
    assert_eq!(get("/oauth2/token", &one).await, 429);
    assert_eq!(get("/oauth2/token", &other).await, 200);
    for path in [
        "/oauth2/jwks",
        "/oauth2/introspect",
        "/.well-known/openid-configuration",
    ] {
        assert_eq!(get(path, &one).await, 200, "{path}");
    }
}

#[tokio::test]
async fn a_request_with_a_bad_token_uses_up_nobodys_quota() {
    let upstream = Counter::start().await;
    let edge = limited(
        upstream.addr,
        "1",
        &redis(),
        &[("GATEWAY_RATE_LIMIT_ALGORITHM", "gcra")],
    )
    .await;
    for _ in 0..3 {
        let request = edge
            .anonymous(Method::GET, "/api/v1/tours")
            .bearer_auth(edge.issuer.forged());
        assert_eq!(request.send().await.expect("answers").status(), 401);
    }
    assert_eq!(get_as(&edge, &Uuid::new_v4().to_string()).await.status(), 200);
}

fn dependency<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report["dependencies"]
        .as_array()?
        .iter()
        .find(|one| one["name"] == name)
}

/// What `/readyz` says of Redis.
async fn redis_is_there(edge: &Edge) -> bool {
    let answer = edge.admin("/readyz").await;
    assert_eq!(answer.status(), 200, "the edge does without Redis");
    let report: Value = answer.json().await.expect("is JSON");
    let redis = dependency(&report, "redis").expect("it is named");
    assert_eq!(redis["kind"], "degradable");
    redis["ok"] == true
}

#[tokio::test]
async fn without_redis_requests_pass_or_are_refused_as_configured_until_it_is_back() {
    let upstream = Counter::start().await;
    for rule in ["open", "closed"] {
        let place = dead().await;
        let settings = [("GATEWAY_RATE_LIMIT_WITHOUT_REDIS", rule)];
        let edge = limited(upstream.addr, "100", &redis_at(place), &settings).await;
        let subject = Uuid::new_v4().to_string();
        assert!(!redis_is_there(&edge).await);
        let response = get_as(&edge, &subject).await;
        assert!(!response.headers().contains_key("ratelimit"), "nothing was counted");
        if rule == "open" {
            assert_eq!(response.status(), 200);
        } else {
            assert_eq!(response.headers()["retry-after"], "1");
            assert_problem(response, 503, "rate-limit-unavailable").await;
        }

        let _redis = hop(place).await;
        eventually("requests are counted", async || {
            let response = get_as(&edge, &subject).await;
            response.status() == 200 && response.headers().contains_key("ratelimit")
        })
        .await;
        eventually("readiness says so", async || redis_is_there(&edge).await).await;
    }
}

#[tokio::test]
async fn a_redis_that_says_nothing_costs_one_short_wait_and_not_one_a_request() {
    let upstream = Counter::start().await;
    let mute = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let place = mute.local_addr().expect("has an address");
    let settings = [("GATEWAY_RATE_LIMIT_TIMEOUT", "900ms")];
    let edge = limited(upstream.addr, "100", &redis_at(place), &settings).await;
    let started = Instant::now();
    for _ in 0..100 {
        assert_eq!(get_as(&edge, "anybody").await.status(), 200);
    }
    // One wait each would be 90 s.
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
}

#[tokio::test]
async fn without_a_limit_redis_is_not_connected_to_and_with_one_it_must_be_named() {
    let upstream = Counter::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let place = listener.local_addr().expect("has an address");
    let edge = limited(upstream.addr, "0", &redis_at(place), &[]).await;
    let response = edge.get("/api/v1/tours").await;
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("ratelimit-policy"));
    let report: Value = edge.admin("/readyz").await.json().await.expect("is JSON");
    assert_eq!(dependency(&report, "redis"), None);
    assert_eq!(pending(&listener), 0, "nobody came to Redis");

    let endpoints = EndpointsFile::new(&[], &[]);
    let issuer = Issuer::start().await;
    let limit = [("GATEWAY_RATE_LIMIT", "60")];
    let error = try_start(Common::default(), &endpoints.path(), &issuer, &limit).await;
    let error = error.err().expect("refuses");
    assert!(
        matches!(error, StartError::Config(_)) && error.to_string().contains("GATEWAY_REDIS_URL"),
        "{error}"
    );
}

/// Connections that wait to be accepted.
fn pending(listener: &TcpListener) -> usize {
    let mut count = 0;
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    while listener.poll_accept(&mut cx).is_ready() {
        count += 1;
    }
    count
}

/// The tests' Redis as if it listened at `place`.
fn redis_at(place: SocketAddr) -> String {
    redis().replace(&redis_addr(), &place.to_string())
}

fn redis_addr() -> String {
    let url = redis();
    let rest = url.split_once("://").expect("a URL").1;
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    host.split('/').next().expect("a host").to_owned()
}

/// Listens at `place` and passes everything on to Redis.
async fn hop(place: SocketAddr) -> tokio::task::JoinHandle<()> {
    let listener = TcpListener::bind(place).await.expect("the place is free");
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(redis_addr()).await.expect("Redis is there");
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            });
        }
    })
}
