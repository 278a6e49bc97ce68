//! `/api/auth/*` and `/api/users/*`.

use reqwest::Response;
use serde_json::{Value, json};

use crate::support::{Database, Issuer, PASSWORD};

async fn body(response: Response) -> Value {
    response.json().await.expect("is JSON")
}

async fn logged_in(issuer: &Issuer, username: &str) -> Value {
    let response = issuer
        .json("/api/auth/login", &json!({"username": username, "password": PASSWORD}))
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-store");
    body(response).await
}

fn token<'a>(login: &'a Value, name: &str) -> &'a str {
    login[name].as_str().unwrap_or_else(|| panic!("no {name} in {login}"))
}

#[tokio::test]
async fn a_stranger_registers_logs_in_stays_logged_in_and_logs_out() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let registration = json!({"username": "Grace", "email": "Grace@example.org", "password": PASSWORD});
    let response = issuer.json("/api/auth/register", &registration).await;
    assert_eq!(response.status(), 201);
    let location = response.headers()["location"].to_str().expect("is ASCII").to_owned();
    let account = body(response).await;
    assert_eq!(location, format!("/api/users/{}", token(&account, "id")));
    assert_eq!(
        (&account["username"], &account["email"]),
        (&json!("grace"), &json!("grace@example.org"))
    );
    assert_eq!(account["tenant"], Value::Null, "nobody chooses his tenant");
    assert_eq!(account["scopes"], json!(["posts:read", "posts:write"]));

    let login = logged_in(&issuer, "grace").await;
    assert_eq!(
        (&login["tokenType"], &login["expiresIn"]),
        (&json!("Bearer"), &json!(300))
    );
    assert_eq!(login["scope"], "posts:read posts:write");
    assert!(issuer.verifier().verify(token(&login, "accessToken")).await.is_ok());
    let me = issuer.get_as("/api/users/me", token(&login, "accessToken")).await;
    assert_eq!(me.status(), 200);
    assert_eq!(body(me).await, account);

    let refresh = async |login: &Value| {
        let body = json!({"refreshToken": token(login, "refreshToken")});
        issuer.json("/api/auth/refresh", &body).await
    };
    let response = refresh(&login).await;
    assert_eq!(response.status(), 200);
    let prolonged = body(response).await;
    assert_eq!(
        issuer
            .get_as("/api/users/me", token(&prolonged, "accessToken"))
            .await
            .status(),
        200
    );

    let out = json!({"refreshToken": token(&prolonged, "refreshToken")});
    for _ in 0..2 {
        assert_eq!(
            issuer.json("/api/auth/logout", &out).await.status(),
            204,
            "also a second time"
        );
    }
    let refused = refresh(&prolonged).await;
    assert_eq!(refused.status(), 401);
    assert!(refused.headers().contains_key("www-authenticate"));
    for tokens in [&login, &prolonged] {
        let over = issuer.get_as("/api/users/me", token(tokens, "accessToken")).await;
        assert_eq!(over.status(), 401, "the session is over at once");
        let challenge = over.headers()["www-authenticate"]
            .to_str()
            .expect("is ASCII")
            .to_owned();
        assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn what_cannot_be_an_account_is_refused_and_the_field_is_named() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let good = json!({"username": "grace", "email": "grace@example.org", "password": PASSWORD});
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    assert_eq!(issuer.json("/api/auth/register", &good).await.status(), 201);
    let cases = [
        (409, "/username", with("email", json!("other@example.org"))),
        (409, "/email", with("username", json!("other"))),
        (422, "/username", with("username", json!("gr ace"))),
        (422, "/username", with("username", json!("gr\0ace"))),
        (422, "/username", with("username", Value::Null)),
        (422, "/username", with("username", json!({"$ne": ""}))),
        (422, "/username", with("username", json!("x".repeat(65)))),
        (422, "/password", with("password", json!("short"))),
        (422, "/password", with("password", json!(12_345_678))),
        (422, "/password", with("password", json!("x".repeat(257)))),
        (422, "/email", with("email", json!("no address"))),
        (422, "/tenant", with("tenant", json!("BEHNGT"))),
        (422, "/scopes", with("scopes", json!(["admin"]))),
        (422, "", json!(["grace"])),
        (422, "", json!("hunter2hunter2")),
    ];
    for (status, pointer, request) in cases {
        let response = issuer.json("/api/auth/register", &request).await;
        assert_eq!(response.status(), status, "{request}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        let text = response.text().await.expect("is text");
        let problem: Value = serde_json::from_str(&text).expect("is JSON");
        assert_eq!(problem["pointer"], pointer, "{request}: {problem}");
        for secret in [PASSWORD, "hunter2hunter2", "12345678"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    for (status, content_type, text) in [
        (400, "application/json", r#"{"username":"grace""#),
        (400, "application/json", r#"{"username":"\ud800"}"#),
        (415, "text/plain", "{}"),
        (422, "application/json", r#"{"username":"a","username":"b"}"#),
        (
            413,
            "application/json",
            &format!(r#"{{"username":"{}"}}"#, "x".repeat(20_000)),
        ),
    ] {
        for path in [
            "/api/auth/register",
            "/api/auth/login",
            "/api/auth/refresh",
            "/api/auth/logout",
        ] {
            let request = issuer
                .post(path)
                .header("content-type", content_type)
                .body(text.to_owned());
            let response = request.send().await.expect("answers");
            assert_eq!(response.status(), status, "{path}: {text:.40}");
        }
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_get_the_same_answer() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let ask = async |username: &str| {
        let request = json!({"username": username, "password": "wrong password"});
        let response = issuer.json("/api/auth/login", &request).await;
        assert_eq!(response.status(), 401);
        assert!(response.headers().contains_key("www-authenticate"));
        body(response).await
    };
    assert_eq!(ask("ada").await, ask("nobody").await);
    assert_eq!(ask("ada").await, ask("no\0body").await);
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn others_see_little_of_an_account_and_other_tenants_nothing() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let registration = json!({"username": "grace", "email": "grace@example.org", "password": PASSWORD});
    let grace = body(issuer.json("/api/auth/register", &registration).await).await;
    let path = format!("/api/users/{}", token(&grace, "id"));
    let (own, bob, ada) = (
        logged_in(&issuer, "grace").await,
        logged_in(&issuer, "bob").await,
        logged_in(&issuer, "ada").await,
    );

    assert_eq!(
        body(issuer.get_as(&path, token(&own, "accessToken")).await).await,
        grace
    );
    let seen = body(issuer.get_as(&path, token(&bob, "accessToken")).await).await;
    let members: Vec<&String> = seen.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["id", "username", "tenant", "createdAt"]);
    for (path, login) in [
        (path.as_str(), &ada),
        ("/api/users/00000000-0000-0000-0000-000000000000", &own),
        ("/api/users/nobody", &own),
        ("/api/users/%00", &own),
    ] {
        let response = issuer.get_as(path, token(login, "accessToken")).await;
        assert_eq!(response.status(), 404, "{path}");
    }

    let client = issuer.get_as("/api/users/me", &issuer.load_token().await).await;
    assert_eq!(client.status(), 403, "a client is nobody");
    for path in ["/api/users/me", path.as_str()] {
        let anonymous = issuer.get(path).await;
        assert_eq!(anonymous.status(), 401);
        assert_eq!(anonymous.headers()["www-authenticate"], r#"Bearer realm="rowlock""#);
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn a_bad_users_file_is_a_start_error_that_names_the_variable_and_no_password() {
    let database = Database::create().await;
    let short = crate::support::JsonFile::write(&json!([{"username": "ada", "password": "hunter2", "scopes": []}]));
    let settings = crate::support::config(&database, &[("USER_USERS_FILE", &short.path())]);
    let error = Issuer::start(settings).await.err().expect("refuses").to_string();
    assert!(
        error.contains("USER_USERS_FILE") && !error.contains("hunter2"),
        "{error}"
    );
    database.drop_it().await;
}
