//! Signing keys take turns, and nobody notices.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chassis::service::{Service, StartError};
use serde_json::Value;
use user::User;

use crate::support::{Database, ISSUER, Issuer, config, eventually};

/// Verifiers of the chassis ask for keys at most every 5 s, and a replica sees a new row after a quarter of the lead.
const LEAD: (&str, &str) = ("USER_KEY_LEAD", "8s");
const ROTATIONS: usize = 3;

fn kid(token: &str) -> String {
    let header = token.split('.').next().expect("split gives something");
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).expect("is base64url")).expect("is JSON");
    header["kid"].as_str().expect("a kid").to_owned()
}

/// What a stranger can send to keep a verifier from asking for keys when it would need them.
fn invented(token: &str) -> String {
    let (_, rest) = token.split_once('.').expect("three parts");
    let header = URL_SAFE_NO_PAD.encode(format!(
        r#"{{"typ":"at+jwt","alg":"RS256","kid":"{}"}}"#,
        uuid::Uuid::new_v4()
    ));
    format!("{header}.{rest}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_several_times_while_requests_run_and_none_of_them_fails() {
    let database = Database::create().await;
    let (one, two) = tokio::join!(
        Issuer::with_clients_and(&database, &[LEAD]),
        Issuer::with_clients_and(&database, &[LEAD])
    );
    // Tokens of one are checked with the keys that two publishes, and the other way round.
    let pairs = [(&one, two.verifier(), &two), (&two, one.verifier(), &one)];
    let first = one.load_token().await;
    let mut kids = BTreeSet::from([kid(&first)]);
    let (mut requests, mut failures) = (0_u32, Vec::new());
    let mut rotations = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while kids.len() <= ROTATIONS {
        assert!(
            Instant::now() < deadline,
            "only {} keys have signed; {failures:?}",
            kids.len()
        );
        if rotations < ROTATIONS {
            User::act("rotate-key", &[], config(&database, &[LEAD]))
                .await
                .expect("rotates");
            rotations += 1;
        }
        for (issuer, verifier, other) in &pairs {
            let token = issuer.load_token().await;
            kids.insert(kid(&token));
            requests += 1;
            drop(verifier.verify(&invented(&token)).await);
            if let Err(error) = verifier.verify(&token).await {
                failures.push(error.to_string());
            }
            if other.introspect(&token).await["active"] != true {
                failures.push("inactive at the other replica".to_owned());
            }
        }
    }
    assert_eq!(failures, Vec::<String>::new(), "of {requests} requests");
    for issuer in [&one, &two] {
        issuer
            .verifier()
            .verify(&first)
            .await
            .expect("the first key is still published");
    }

    // Once its last token has expired, a key is withdrawn.
    let mut connection = database.connect().await;
    sqlx::query("UPDATE signing_key SET retires_at = now() WHERE kid = $1")
        .bind(kid(&first))
        .execute(&mut connection)
        .await
        .expect("is allowed");
    eventually("the first key is withdrawn", async || {
        one.introspect(&first).await["active"] == false && two.verifier().verify(&first).await.is_err()
    })
    .await;
    for issuer in [one, two] {
        issuer.stop().await;
    }
    database.drop_it().await;
}

#[tokio::test]
async fn replicas_with_an_interval_make_one_key_at_a_time() {
    let database = Database::create().await;
    let settings = [("USER_KEY_ROTATION", "1s"), ("USER_KEY_LEAD", "400ms")];
    let (one, two) = tokio::join!(
        Issuer::with_clients_and(&database, &settings),
        Issuer::with_clients_and(&database, &settings)
    );
    let mut connection = database.connect().await;
    let gaps = "SELECT count(*), min(extract(epoch FROM gap))::float8
                FROM (SELECT signs_from - lag(signs_from) OVER (ORDER BY signs_from) AS gap FROM signing_key) AS gaps";
    let (mut keys, mut shortest) = (0_i64, None::<f64>);
    let deadline = Instant::now() + Duration::from_secs(30);
    while keys < 4 {
        assert!(Instant::now() < deadline, "only {keys} keys");
        tokio::time::sleep(Duration::from_millis(50)).await;
        (keys, shortest) = sqlx::query_as(gaps).fetch_one(&mut connection).await.expect("answers");
    }
    assert!(
        shortest.is_some_and(|seconds| seconds >= 0.99),
        "{shortest:?} s between two keys"
    );
    for issuer in [one, two] {
        issuer.stop().await;
    }
    database.drop_it().await;
}

#[tokio::test]
async fn an_interval_that_leaves_no_time_to_publish_is_refused() {
    let database = Database::named().await;
    let settings = config(&database, &[("USER_KEY_ROTATION", "1m"), ("USER_KEY_LEAD", "1m")]);
    let error = Issuer::start(settings).await.err().expect("refuses");
    assert!(matches!(error, StartError::Config(_)), "{error}");
    assert!(error.to_string().contains("USER_KEY_LEAD"), "{error}");
}

#[tokio::test]
async fn the_program_rotates_the_key_and_refuses_words_it_does_not_know() {
    let database = Database::create().await;
    let url = database.url();
    let run = |word: &'static str| {
        let variables = [
            ("USER_ISSUER", ISSUER),
            ("USER_SECRET_PEPPER", "pepper-pepper-pepper"),
            ("USER_KEY_ENCRYPTION_SECRET", "sealing-sealing-sealing"),
            ("USER_DB_URL", url.as_str()),
        ];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_user"));
        command.env_clear().envs(variables).arg(word).output().expect("runs")
    };
    for keys in 1..=2 {
        let output = run("rotate-key");
        assert!(output.status.success(), "{output:?}");
        let mut connection = database.connect().await;
        let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM signing_key")
            .fetch_one(&mut connection)
            .await
            .expect("answers");
        assert_eq!(stored, keys);
    }
    let unknown = run("rotate-keys");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("rotate-key"),
        "{unknown:?}"
    );
    database.drop_it().await;
}
