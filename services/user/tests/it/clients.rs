//! The clients file.

use serde_json::json;

use crate::support::{Database, Issuer, JsonFile, SECRET, config};

#[tokio::test]
async fn the_file_is_written_at_every_start_and_leaves_other_clients_alone() {
    let database = Database::create().await;
    Issuer::with_clients(&database).await.stop().await;

    let other_secret = "changed-secret-0123456789abcdef";
    let file = JsonFile::write(
        &json!([{"client_id": "load", "client_secret": other_secret, "tenant": "NORDEX", "scopes": ["tours:read"]}]),
    );
    let issuer = Issuer::start(config(&database, &[("USER_CLIENTS_FILE", &file.path())]))
        .await
        .expect("starts");
    let ask = async |client: &str, secret: &str| {
        let form = [("grant_type", "client_credentials")];
        issuer
            .token()
            .basic_auth(client, Some(secret))
            .form(&form)
            .send()
            .await
            .expect("answers")
    };

    assert_eq!(ask("load", SECRET).await.status(), 401, "the old secret is gone");
    let body: serde_json::Value = ask("load", other_secret).await.json().await.expect("is JSON");
    assert_eq!(body["scope"], "tours:read");
    let claims = issuer
        .verifier()
        .verify(body["access_token"].as_str().expect("a token"))
        .await
        .expect("verifies");
    assert_eq!(claims.tenant.as_deref(), Some("NORDEX"));
    assert_eq!(
        ask("reader", SECRET).await.status(),
        200,
        "a client that is not in the file stays"
    );

    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_bad_file_is_a_start_error_that_names_the_variable() {
    let database = Database::create().await;
    let short = JsonFile::write(&json!([{"client_id": "a", "client_secret": "short", "scopes": []}]));
    for path in [short.path(), "/nowhere/clients.json".to_owned()] {
        let error = Issuer::start(config(&database, &[("USER_CLIENTS_FILE", &path)]))
            .await
            .err()
            .expect("refuses");
        assert!(matches!(error, chassis::service::StartError::Config(_)), "{error}");
        assert!(error.to_string().contains("USER_CLIENTS_FILE"), "{error}");
    }
    database.drop_it().await;
}

#[tokio::test]
async fn no_secret_is_stored_in_the_clear_or_shown_by_config() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;

    let shown = issuer.admin("/config").await.text().await.expect("is text");
    assert!(shown.contains("token_lifetime"), "{shown}");
    for secret in ["pepper-pepper-pepper", "sealing-sealing-sealing", SECRET] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    let mut connection = database.connect().await;
    let stored: String = sqlx::query_scalar("SELECT string_agg(client::text, ' ') FROM client")
        .fetch_one(&mut connection)
        .await
        .expect("answers");
    assert!(stored.contains("BEHNGT") && !stored.contains(SECRET), "{stored}");

    issuer.stop().await;
    database.drop_it().await;
}
