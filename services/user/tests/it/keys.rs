//! The signing key: shared, kept, and not lost on a wrong secret.

use chassis::service::{Service, StartError};
use serde_json::Value;
use user::User;

use crate::support::{Database, Issuer, config, eventually};

async fn kids(issuer: &Issuer) -> Vec<String> {
    let set: Value = issuer.get("/oauth2/jwks").await.json().await.expect("is JSON");
    let keys = set["keys"].as_array().expect("a list of keys");
    keys.iter()
        .map(|key| key["kid"].as_str().expect("a kid").to_owned())
        .collect()
}

#[tokio::test]
async fn replicas_that_start_together_share_one_key() {
    let database = Database::create().await;
    let (one, two, three) = tokio::join!(
        Issuer::with_clients(&database),
        Issuer::with_clients(&database),
        Issuer::with_clients(&database)
    );
    assert_eq!(kids(&one).await, kids(&two).await);
    assert_eq!(kids(&one).await, kids(&three).await);
    two.verifier()
        .verify(&one.load_token().await)
        .await
        .expect("a token of one verifies with the keys of two");

    let mut connection = database.connect().await;
    let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM signing_key")
        .fetch_one(&mut connection)
        .await
        .expect("answers");
    assert_eq!(stored, 1);
    for issuer in [one, two, three] {
        issuer.stop().await;
    }
    database.drop_it().await;
}

#[tokio::test]
async fn a_token_outlives_a_restart() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let token = issuer.load_token().await;
    issuer.stop().await;
    let issuer = Issuer::with_clients(&database).await;
    issuer.verifier().verify(&token).await.expect("still verifies");
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_wrong_encryption_secret_is_a_start_error_and_leaves_the_key_alone() {
    let database = Database::create().await;
    Issuer::with_clients(&database).await.stop().await;

    let wrong = config(&database, &[("USER_KEY_ENCRYPTION_SECRET", "another-another-another")]);
    let error = Issuer::start(wrong).await.err().expect("refuses");
    assert!(matches!(error, StartError::Config(_)), "{error}");
    assert!(error.to_string().contains("USER_KEY_ENCRYPTION_SECRET"), "{error}");

    Issuer::with_clients(&database).await.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn the_private_key_is_not_in_the_key_set_nor_readable_in_the_database() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let set: Value = issuer.get("/oauth2/jwks").await.json().await.expect("is JSON");
    let members: Vec<&String> = set["keys"][0].as_object().expect("a key").keys().collect();
    assert_eq!(members, ["kty", "use", "alg", "kid", "n", "e"]);

    let mut connection = database.connect().await;
    let sealed: Vec<u8> = sqlx::query_scalar("SELECT sealed FROM signing_key")
        .fetch_one(&mut connection)
        .await
        .expect("answers");
    // The object identifier of RSA, which every PKCS#8 RSA key in the clear holds.
    let rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    assert!(sealed.len() > 1000 && !sealed.windows(rsa.len()).any(|window| window == rsa));
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn the_service_starts_without_its_database_and_becomes_ready_when_it_comes() {
    let database = Database::named().await;
    let issuer = Issuer::start(config(&database, &[("USER_DB_ACQUIRE_TIMEOUT", "500ms")]))
        .await
        .expect("starts");
    assert_eq!(issuer.admin("/livez").await.status(), 200);
    let waiting = issuer.admin("/readyz").await;
    assert_eq!(waiting.status(), 503);
    assert!(waiting.text().await.expect("is text").contains("signing-key"));
    assert_eq!(issuer.get("/oauth2/jwks").await.status(), 503);
    let form = [("grant_type", "client_credentials")];
    let refused = issuer
        .token()
        .basic_auth("load", Some("x"))
        .form(&form)
        .send()
        .await
        .expect("answers");
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));

    // First without tables, which is a reason of its own not to be ready.
    database.create_now().await;
    eventually("readiness names the missing tables", async || {
        issuer
            .admin("/readyz")
            .await
            .text()
            .await
            .is_ok_and(|text| text.contains("user migrate"))
    })
    .await;
    User::migrate(config(&database, &[])).await.expect("migrates");
    eventually("the service is ready", async || {
        issuer.admin("/readyz").await.status() == 200
    })
    .await;
    assert_eq!(kids(&issuer).await.len(), 1);

    issuer.stop().await;
    database.drop_it().await;
}
