//! The issuer's keys: cached, refetched with restraint, taken only from the issuer.

use std::time::{Duration, Instant};

use chassis::auth::{AuthError, Verifier};
use serde_json::json;

use super::{Issuer, Key, config, with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_key_ids_do_not_storm_the_issuer() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let verifier = issuer.verifier();
    let claims = issuer.claims();
    let tokens: Vec<_> = (0..100)
        .map(|n| key.sign(&format!("unknown-{n}"), "at+jwt", &claims))
        .collect();
    let started = Instant::now();
    let checks = tokens.into_iter().map(|token| {
        let verifier = verifier.clone();
        tokio::spawn(async move { verifier.verify(&token).await })
    });
    for check in futures::future::join_all(checks).await {
        assert!(matches!(check.expect("not panicked"), Err(AuthError::InvalidToken(_))));
    }
    let allowed = 1 + started.elapsed().as_secs() / 5;
    assert!(
        issuer.fetches() as u64 <= allowed,
        "{} fetches, allowed {allowed}",
        issuer.fetches()
    );
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_found() {
    let old = Key::generate("old");
    let new = Key::generate("new");
    let issuer = Issuer::start(&[&old]).await;
    let verifier = issuer.verifier();
    assert!(
        verifier
            .verify(&old.sign("old", "at+jwt", &issuer.claims()))
            .await
            .is_ok()
    );
    issuer.publish(&[&old, &new]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while verifier
        .verify(&new.sign("new", "at+jwt", &issuer.claims()))
        .await
        .is_err()
    {
        assert!(Instant::now() < deadline, "the new key was never fetched");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        verifier
            .verify(&old.sign("old", "at+jwt", &issuer.claims()))
            .await
            .is_ok(),
        "the old key still counts"
    );
}

#[tokio::test]
async fn known_keys_outlive_their_issuer() {
    let key = Key::generate("k1");
    let mut issuer = Issuer::start(&[&key]).await;
    let verifier = issuer.verifier();
    assert!(
        verifier
            .verify(&key.sign("k1", "at+jwt", &issuer.claims()))
            .await
            .is_ok()
    );
    issuer.die().await;
    assert!(
        verifier
            .verify(&key.sign("k1", "at+jwt", &issuer.claims()))
            .await
            .is_ok(),
        "the cached key works on"
    );
    let unknown_to_us = Key::generate("k2").sign("k2", "at+jwt", &issuer.claims());
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        // Refused as long as the last fetch counts as fresh; from then on nobody can say that the token is bad.
        match verifier.verify(&unknown_to_us).await {
            Err(AuthError::IssuerUnavailable(_)) => break,
            other => assert!(
                matches!(other, Err(AuthError::InvalidToken(_))) && Instant::now() < deadline,
                "{other:?}"
            ),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn keys_that_cannot_be_trusted_are_not_taken() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let unavailable = async |verifier: &Verifier, iss: &str| {
        let token = key.sign("k1", "at+jwt", &with(issuer.claims(), "iss", json!(iss)));
        match verifier.verify(&token).await {
            Err(AuthError::IssuerUnavailable(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };

    let other_name = issuer.url.replace("127.0.0.1", "localhost");
    let verifier = Verifier::new(&config(&other_name)).expect("a good configuration");
    assert!(
        unavailable(&verifier, &other_name).await.contains("names the issuer"),
        "discovery of another issuer"
    );

    *issuer.keys.lock().expect("not poisoned") = json!({"keys": [], "padding": "x".repeat(70_000)});
    assert!(
        unavailable(&issuer.verifier(), &issuer.url).await.contains("64 KiB"),
        "a key set without end"
    );
}

#[test]
fn an_issuer_that_is_no_url_is_a_configuration_error() {
    let error = Verifier::new(&config("ftp://issuer")).err().expect("refused");
    assert!(error.to_string().contains("auth_issuer"), "{error}");
}
