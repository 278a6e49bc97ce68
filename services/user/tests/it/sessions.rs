//! Refresh tokens: rotated on use, ended by reuse, revocation and time.

use serde_json::Value;

use crate::support::{Database, Issuer};

fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("no {name} in {body}"))
}

async fn refresh(issuer: &Issuer, client: &str, token: &str, scope: &str) -> (u16, Value) {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("scope", scope),
    ];
    let response = issuer.form("/oauth2/token", client, &form).await;
    (response.status().as_u16(), response.json().await.expect("is JSON"))
}

async fn active(issuer: &Issuer, token: &str) -> bool {
    issuer.introspect(token).await["active"] == true
}

#[tokio::test]
async fn each_use_gives_a_new_token_and_a_used_one_ends_the_whole_family() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let first = issuer.ada().await;
    let (status, second) = refresh(&issuer, "app", text(&first, "refresh_token"), "").await;
    assert_eq!(status, 200, "{second}");
    assert_ne!(second["refresh_token"], first["refresh_token"]);
    assert_eq!(second["scope"], first["scope"]);
    assert!(
        active(&issuer, text(&first, "access_token")).await,
        "still its own time"
    );
    assert!(active(&issuer, text(&second, "access_token")).await);

    // A thief, or the user after the thief: nobody can tell, so both are out.
    let (status, body) = refresh(&issuer, "app", text(&first, "refresh_token"), "").await;
    assert_eq!((status, &body["error"]), (400, &"invalid_grant".into()));
    let (status, body) = refresh(&issuer, "app", text(&second, "refresh_token"), "").await;
    assert_eq!(
        (status, &body["error"]),
        (400, &"invalid_grant".into()),
        "the family has ended"
    );
    for token in [&first, &second] {
        assert!(
            !active(&issuer, text(token, "access_token")).await,
            "its access tokens, too"
        );
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn of_many_who_use_one_token_at_once_at_most_one_gets_the_next() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let first = issuer.ada().await;
    let token = text(&first, "refresh_token");
    let answers = futures::future::join_all((0..8).map(|_| refresh(&issuer, "app", token, ""))).await;
    let given: Vec<&Value> = answers
        .iter()
        .filter(|(status, _)| *status == 200)
        .map(|(_, body)| body)
        .collect();
    assert_eq!(given.len(), 1, "{answers:?}");
    let (status, _) = refresh(&issuer, "app", text(given[0], "refresh_token"), "").await;
    assert_eq!(status, 400, "the others have ended the session");
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_token_is_bound_to_its_client_and_scopes_only_narrow() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let first = issuer.ada().await;
    let token = text(&first, "refresh_token");

    for (client, token, scope, error) in [
        ("other", token, "", "invalid_grant"),
        ("app", "invented", "", "invalid_grant"),
        ("app", "", "", "invalid_request"),
        ("app", token, "admin", "invalid_scope"),
    ] {
        let (status, body) = refresh(&issuer, client, token, scope).await;
        assert_eq!((status, &body["error"]), (400, &error.into()), "{client} {scope}");
    }
    // None of these has cost the client its token.
    let (status, second) = refresh(&issuer, "app", token, "tours:read").await;
    assert_eq!((status, &second["scope"]), (200, &"tours:read".into()));
    let (status, third) = refresh(&issuer, "app", text(&second, "refresh_token"), "").await;
    assert_eq!(
        (status, &third["scope"]),
        (200, &"tours:read tours:write".into()),
        "the session keeps all"
    );

    // What the user lost since his login is lost at the next use.
    let mut connection = database.connect().await;
    sqlx::query("UPDATE account SET scopes = '{tours:read}' WHERE username = 'ada'")
        .execute(&mut connection)
        .await
        .expect("is allowed");
    let (status, fourth) = refresh(&issuer, "app", text(&third, "refresh_token"), "").await;
    assert_eq!((status, &fourth["scope"]), (200, &"tours:read".into()));
    sqlx::query("DELETE FROM account WHERE username = 'ada'")
        .execute(&mut connection)
        .await
        .expect("is allowed");
    let (status, _) = refresh(&issuer, "app", text(&fourth, "refresh_token"), "").await;
    assert_eq!(status, 400, "the user is gone");
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn an_expired_token_prolongs_nothing_and_none_is_stored_in_the_clear() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let first = issuer.ada().await;
    let token = text(&first, "refresh_token");
    let mut connection = database.connect().await;
    let stored: String = sqlx::query_scalar("SELECT string_agg(t::text, ' ') FROM refresh_token t")
        .fetch_one(&mut connection)
        .await
        .expect("answers");
    assert!(stored.contains("\\x") && !stored.contains(token), "{stored}");
    sqlx::query("UPDATE refresh_token SET expires_at = now()")
        .execute(&mut connection)
        .await
        .expect("is allowed");
    let (status, body) = refresh(&issuer, "app", token, "").await;
    assert_eq!((status, &body["error"]), (400, &"invalid_grant".into()));
    issuer.stop().await;
    database.drop_it().await;
}
