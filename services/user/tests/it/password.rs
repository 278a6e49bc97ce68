//! The password grant.

use serde_json::{Value, json};

use crate::support::{Database, Issuer, PASSWORD};

fn grant<'a>(username: &'a str, password: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "password"),
        ("username", username),
        ("password", password),
    ]
}

#[tokio::test]
async fn a_user_gets_a_token_of_his_tenant_with_the_scopes_that_he_and_the_client_share() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;

    let body = issuer.ada().await;
    assert_eq!(
        (&body["token_type"], &body["expires_in"]),
        (&json!("Bearer"), &json!(300))
    );
    assert_eq!(body["scope"], "tours:read tours:write", "admin is not for this client");
    assert!(
        body["refresh_token"].as_str().is_some_and(|token| token.len() == 43),
        "{body}"
    );
    let claims = issuer
        .verifier()
        .verify(body["access_token"].as_str().expect("a token"))
        .await
        .expect("verifies");
    assert_eq!(
        (claims.client_id.as_str(), claims.tenant.as_deref()),
        ("app", Some("BEHNGT"))
    );
    assert!(claims.sub.parse::<uuid::Uuid>().is_ok(), "{}", claims.sub);
    assert_eq!(claims.scopes, ["tours:read", "tours:write"]);

    let mut narrow = grant("ADA", PASSWORD);
    narrow.push(("scope", "tours:read"));
    let body: Value = issuer
        .form("/oauth2/token", "app", &narrow)
        .await
        .json()
        .await
        .expect("is JSON");
    assert_eq!(body["scope"], "tours:read", "the name is the same in capitals");

    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn each_mistake_has_its_own_error_code_and_a_wrong_name_looks_like_a_wrong_password() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let mut wide = grant("ada", PASSWORD);
    wide.push(("scope", "admin"));
    let cases = [
        (
            "no password",
            "app",
            vec![("grant_type", "password"), ("username", "ada")],
            "invalid_request",
        ),
        (
            "a wrong password",
            "app",
            grant("ada", "wrong password"),
            "invalid_grant",
        ),
        ("an unknown user", "app", grant("nobody", PASSWORD), "invalid_grant"),
        (
            "a name that nobody can have",
            "app",
            grant("a\0da", PASSWORD),
            "invalid_grant",
        ),
        (
            "a client of another tenant",
            "other",
            grant("ada", PASSWORD),
            "invalid_grant",
        ),
        ("a scope the client may not have", "app", wide, "invalid_scope"),
        (
            "a client without this grant",
            "reader",
            grant("ada", PASSWORD),
            "unauthorized_client",
        ),
    ];
    let mut refusals = Vec::new();
    for (case, client, form, code) in cases {
        let response = issuer.form("/oauth2/token", client, &form).await;
        assert_eq!(response.status(), 400, "{case}");
        assert_eq!(response.headers()["cache-control"], "no-store", "{case}");
        let body: Value = response.json().await.expect("is JSON");
        assert_eq!(body["error"], code, "{case}: {body}");
        if code == "invalid_grant" {
            refusals.push(body);
        }
    }
    assert!(refusals.iter().all(|body| *body == refusals[0]), "{refusals:?}");
    issuer.stop().await;
    database.drop_it().await;
}

/// The time of one login is noise; that a name is looked up in vain must still cost one whole argon2id.
#[tokio::test]
async fn an_unknown_user_costs_as_much_work_as_a_wrong_password() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let mut least = [std::time::Duration::MAX; 2];
    for _ in 0..8 {
        for (least, name) in least.iter_mut().zip(["ada", "nobody"]) {
            let started = std::time::Instant::now();
            let response = issuer
                .form("/oauth2/token", "app", &grant(name, "wrong password"))
                .await;
            assert_eq!(response.status(), 400);
            *least = started.elapsed().min(*least);
        }
    }
    // Without the work the answer comes at least ten times sooner.
    let [wrong, unknown] = least;
    assert!(unknown > wrong / 5, "unknown {unknown:?}, wrong password {wrong:?}");
    issuer.stop().await;
    database.drop_it().await;
}
