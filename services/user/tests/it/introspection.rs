//! Introspection (RFC 7662) and revocation (RFC 7009).

use serde_json::{Value, json};

use crate::support::{Database, ISSUER, Issuer, SECRET, eventually};

async fn revoke(issuer: &Issuer, client: &str, token: &str) -> reqwest::Response {
    issuer.form("/oauth2/revoke", client, &[("token", token)]).await
}

#[tokio::test]
async fn an_active_token_is_described_and_anything_else_is_just_inactive() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let body = issuer.ada().await;
    let (access, refresh) = (body["access_token"].as_str(), body["refresh_token"].as_str());
    let (access, refresh) = (access.expect("a token"), refresh.expect("a token"));
    let load = issuer.load_token().await;

    let mut told = issuer.introspect(access).await;
    let members = told.as_object_mut().expect("an object");
    for name in ["sub", "exp", "iat", "jti"] {
        assert!(members.remove(name).is_some(), "{name} is not told");
    }
    assert_eq!(
        told,
        json!({
            "active": true, "scope": "tours:read tours:write", "client_id": "app", "tenant": "BEHNGT",
            "iss": ISSUER, "aud": "rowlock", "token_type": "Bearer",
        })
    );
    let told = issuer.introspect(&load).await;
    assert_eq!((&told["sub"], &told["client_id"]), (&json!("load"), &json!("load")));
    assert_eq!(told["exp"].as_i64(), told["iat"].as_i64().map(|issued| issued + 300));

    let (head, signature) = access.rsplit_once('.').expect("three parts");
    let (header, payload) = head.split_once('.').expect("three parts");
    let (_, load_signature) = load.rsplit_once('.').expect("three parts");
    for (case, token) in [
        ("a refresh token", refresh.to_owned()),
        ("nonsense", "nonsense".to_owned()),
        ("dots", "...".to_owned()),
        ("a NUL", "a\0b".to_owned()),
        ("without a signature", format!("{head}.")),
        ("with another token's signature", format!("{head}.{load_signature}")),
        ("with another header", format!("e30.{payload}.{signature}")),
        ("without a payload", format!("{header}..{signature}")),
        ("very long", "x".repeat(9000)),
    ] {
        assert_eq!(issuer.introspect(&token).await, json!({"active": false}), "{case}");
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn an_expired_token_is_inactive() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients_and(&database, &[("USER_TOKEN_LIFETIME", "1s")]).await;
    let token = issuer.load_token().await;
    eventually("the token expires", async || {
        issuer.introspect(&token).await == json!({"active": false})
    })
    .await;
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn only_a_client_that_may_is_told_anything() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let token = issuer.load_token().await;
    for path in ["/oauth2/introspect", "/oauth2/revoke"] {
        let anonymous = issuer
            .post(path)
            .form(&[("token", &token)])
            .send()
            .await
            .expect("answers");
        assert_eq!(anonymous.status(), 401, "{path}");
        assert!(anonymous.headers().contains_key("www-authenticate"), "{path}");
        let wrong = issuer
            .post(path)
            .basic_auth("edge", Some("wrong"))
            .form(&[("token", &token)]);
        assert_eq!(wrong.send().await.expect("answers").status(), 401, "{path}");
        let empty = issuer.form(path, "edge", &[]).await;
        assert_eq!(empty.status(), 400, "{path}");
        let in_the_body = [
            ("token", token.as_str()),
            ("client_id", "edge"),
            ("client_secret", SECRET),
        ];
        let allowed = issuer.post(path).form(&in_the_body).send().await.expect("answers");
        // `edge` may ask about the token, and may not revoke it.
        assert_eq!(allowed.status(), if path.ends_with("introspect") { 200 } else { 400 });
    }
    let response = issuer.form("/oauth2/introspect", "load", &[("token", &token)]).await;
    assert_eq!(response.status(), 400);
    let body: Value = response.json().await.expect("is JSON");
    assert_eq!(body["error"], "unauthorized_client", "{body}");
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_revoked_token_is_inactive_on_every_replica_and_others_are_not() {
    let database = Database::create().await;
    let (one, two) = tokio::join!(Issuer::with_clients(&database), Issuer::with_clients(&database));
    let (gone, kept) = (one.load_token().await, one.load_token().await);

    let foreign = revoke(&one, "app", &gone).await;
    assert_eq!(foreign.status(), 400, "a client can only give back what is its own");
    assert_eq!(two.introspect(&gone).await["active"], true);

    for _ in 0..2 {
        let response = revoke(&one, "load", &gone).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["cache-control"], "no-store");
    }
    assert_eq!(two.introspect(&gone).await, json!({"active": false}));
    assert_eq!(two.introspect(&kept).await["active"], true);
    assert_eq!(revoke(&one, "load", "unknown").await.status(), 200);

    for issuer in [one, two] {
        issuer.stop().await;
    }
    database.drop_it().await;
}

#[tokio::test]
async fn a_revoked_refresh_token_takes_its_session_along() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let (gone, kept) = (issuer.ada().await, issuer.ada().await);
    let token = |body: &Value, name: &str| body[name].as_str().expect("a token").to_owned();

    assert_eq!(
        revoke(&issuer, "other", &token(&gone, "refresh_token")).await.status(),
        400
    );
    assert_eq!(issuer.introspect(&token(&gone, "access_token")).await["active"], true);
    assert_eq!(
        revoke(&issuer, "app", &token(&gone, "refresh_token")).await.status(),
        200
    );
    assert_eq!(
        issuer.introspect(&token(&gone, "access_token")).await,
        json!({"active": false})
    );
    assert_eq!(issuer.introspect(&token(&kept, "access_token")).await["active"], true);
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &token(&gone, "refresh_token")),
    ];
    assert_eq!(issuer.form("/oauth2/token", "app", &form).await.status(), 400);
    issuer.stop().await;
    database.drop_it().await;
}
