//! The Redis pool against a real server, at times behind a hop that swallows everything.

use std::time::{Duration, Instant};

use chassis::{cache, config};
use redis::AsyncCommands;

use crate::servers::{Forwarder, redirect, unique, url};

fn pool(url: &str, max: &str, timeout: &str) -> deadpool_redis::Pool {
    let pairs = [
        ("IT_REDIS_URL", url),
        ("IT_REDIS_POOL_MAX", max),
        ("IT_REDIS_TIMEOUT", timeout),
    ];
    cache::pool(&config::parse_from("it", &pairs).expect("a good configuration")).expect("a pool")
}

#[tokio::test]
async fn waiting_for_a_connection_is_bounded() {
    let pool = pool(&url("ROWLOCK_TEST_REDIS"), "1", "200ms");
    let held = pool.get().await.expect("the only connection");
    let started = Instant::now();
    assert!(pool.get().await.is_err(), "the pool is exhausted");
    assert!(started.elapsed() < Duration::from_secs(10));
    drop(held);
    assert!(pool.get().await.is_ok(), "and usable again");
}

#[tokio::test]
async fn a_command_that_gets_no_answer_fails_within_the_bound_and_spoils_nothing() {
    let server = url("ROWLOCK_TEST_REDIS");
    let hop = Forwarder::to(&server).await;
    let pool = pool(&redirect(&server, hop.port), "1", "300ms");
    let (first, second) = (unique("cache"), unique("cache"));
    let mut connection = pool.get().await.expect("a connection");
    let _: () = connection.set_ex(first, "one", 60).await.expect("stored");
    let _: () = connection.set_ex(second, "two", 60).await.expect("stored");

    hop.stall();
    let started = Instant::now();
    let outcome: redis::RedisResult<String> = connection.get(first).await;
    assert!(outcome.is_err_and(|error| error.is_timeout()));
    assert!(started.elapsed() < Duration::from_secs(10));
    drop(connection);

    hop.open();
    let mut connection = pool.get().await.expect("a connection");
    let value: String = connection.get(second).await.expect("an answer");
    assert_eq!(
        value, "two",
        "the late answer to the first command is not taken for this one's"
    );
}

#[tokio::test]
async fn connecting_to_a_server_that_says_nothing_is_bounded() {
    let server = url("ROWLOCK_TEST_REDIS");
    let hop = Forwarder::to(&server).await;
    hop.stall();
    let pool = pool(&redirect(&server, hop.port), "1", "200ms");
    let started = Instant::now();
    assert!(pool.get().await.is_err());
    assert!(started.elapsed() < Duration::from_secs(10));
}
