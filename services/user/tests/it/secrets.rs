//! What must stay secret is in nothing the service prints, exports or answers, whatever it is asked.

use chassis::service::Service;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use testkit::{Collector, Process, Search};
use user::User;

use crate::support::{Database, ISSUER, JsonFile, PASSWORD, SECRET, clients, config, eventually, users};

const PEPPER: &str = "pepper-0123456789abcdef";
const SEALING: &str = "sealing-0123456789abcdef";
const WRONG: &str = "wrong-but-nearly-right-0123456789";

/// The text of a field, kept as a secret.
fn secret(search: &mut Search, what: &'static str, value: &Value) -> String {
    let value = value.as_str().unwrap_or_else(|| panic!("no {what}"));
    search.secret(what, value);
    value.to_owned()
}

async fn json(response: Response) -> Value {
    assert!(response.status().is_success(), "{}", response.status());
    response.json().await.expect("is JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_printed_exported_shown_or_sent_back() {
    let database = Database::create().await;
    let collector = Collector::start().await;
    let (clients, users) = (JsonFile::write(&clients()), JsonFile::write(&users()));
    User::migrate(config(&database, &[])).await.expect("migrates");
    let process = Process::serve(
        env!("CARGO_BIN_EXE_user"),
        &[
            ("USER_ISSUER", ISSUER),
            ("USER_SECRET_PEPPER", PEPPER),
            ("USER_KEY_ENCRYPTION_SECRET", SEALING),
            ("USER_DB_URL", &database.url()),
            ("USER_CLIENTS_FILE", &clients.path()),
            ("USER_USERS_FILE", &users.path()),
            ("USER_LOG", "trace"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
        ],
    );
    let http = Client::builder().no_proxy().build().expect("a client");
    let ready = format!("http://{}/readyz", process.admin);
    eventually("the service is ready", async || {
        http.get(&ready).send().await.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    let post = |path: &str| http.post(format!("http://{}{path}", process.http));
    let form = |path: &str, client: &str, form: &[(&str, &str)]| post(path).basic_auth(client, Some(SECRET)).form(form);
    let mut search = Search::default();
    for (what, value) in [
        ("client secret", SECRET),
        ("password", PASSWORD),
        ("mistyped secret", WRONG),
        ("pepper", PEPPER),
        ("key secret", SEALING),
    ] {
        search.secret(what, value);
    }
    search.password_of("database password", &database.url());

    // Everything works once, with the secrets in it.
    let credentials = [("grant_type", "password"), ("username", "ada"), ("password", PASSWORD)];
    let tokens = json(
        form("/oauth2/token", "app", &credentials)
            .send()
            .await
            .expect("answers"),
    )
    .await;
    let access = secret(&mut search, "access token", &tokens["access_token"]);
    let first = secret(&mut search, "refresh token", &tokens["refresh_token"]);
    let refresh = [("grant_type", "refresh_token"), ("refresh_token", first.as_str())];
    let tokens = json(form("/oauth2/token", "app", &refresh).send().await.expect("answers")).await;
    let second = secret(&mut search, "second refresh token", &tokens["refresh_token"]);
    json(
        form("/oauth2/introspect", "edge", &[("token", &access)])
            .send()
            .await
            .expect("answers"),
    )
    .await;
    let registration = json!({"username": "grace", "password": PASSWORD});
    json(
        post("/api/auth/register")
            .json(&registration)
            .send()
            .await
            .expect("answers"),
    )
    .await;
    let login = json(
        post("/api/auth/login")
            .json(&registration)
            .send()
            .await
            .expect("answers"),
    )
    .await;
    let bearer = secret(&mut search, "access token of a login", &login["accessToken"]);
    let session = secret(&mut search, "refresh token of a login", &login["refreshToken"]);
    let me = http
        .get(format!("http://{}/api/users/me", process.http))
        .bearer_auth(&bearer);
    json(me.send().await.expect("answers")).await;

    // And everything fails once, with secrets where they do not belong.
    search
        .refused(
            "a wrong secret",
            post("/oauth2/token").basic_auth("app", Some(WRONG)).form(&credentials),
        )
        .await;
    search
        .refused("a reused refresh token", form("/oauth2/token", "app", &refresh))
        .await;
    let twice = [
        ("grant_type", "password"),
        ("password", PASSWORD),
        ("password", PASSWORD),
    ];
    search
        .refused("a password twice", form("/oauth2/token", "app", &twice))
        .await;
    let odd = [("grant_type", PASSWORD), ("scope", SECRET), ("refresh_token", &second)];
    search
        .refused("a password as the grant", form("/oauth2/token", "app", &odd))
        .await;
    let not_asking = form("/oauth2/introspect", "app", &[("token", &access)]);
    search.refused("a client that may not ask", not_asking).await;
    let as_text = post("/oauth2/token").body(format!("password={PASSWORD}&client_secret={SECRET}"));
    search.refused("no form", as_text).await;
    let in_the_url = http.get(format!("http://{}/api/users/me?access_token={bearer}", process.http));
    search.refused("a token in the query", in_the_url).await;
    let bad_bearer = http
        .get(format!("http://{}/api/users/me", process.http))
        .bearer_auth(&second);
    search.refused("a refresh token as a bearer", bad_bearer).await;
    for (what, body) in [
        ("a wrong password", json!({"username": "ada", "password": WRONG})),
        (
            "a password as the name",
            json!({"username": PASSWORD, "password": WRONG}),
        ),
        (
            "a password in a list",
            json!({"username": "ada", "password": [PASSWORD]}),
        ),
        ("a password as a body", json!(PASSWORD)),
        (
            "a password too much",
            json!({"username": "ada", "password": PASSWORD, "pass": PASSWORD}),
        ),
    ] {
        search.refused(what, post("/api/auth/login").json(&body)).await;
    }
    let cut = format!(r#"{{"username":"ada","password":"{PASSWORD}"#);
    let cut = post("/api/auth/login")
        .header("content-type", "application/json")
        .body(cut);
    search.refused("a body that ends too soon", cut).await;
    let out = post("/api/auth/logout").json(&json!({"refreshToken": session}));
    assert_eq!(out.send().await.expect("answers").status(), 204);
    let gone = post("/api/auth/refresh").json(&json!({"refreshToken": session}));
    search.refused("a refresh token of an ended session", gone).await;

    search.end(&http, process, &collector).await;
    search.expect("the log", "a refresh token was used twice");
    search.expect("the telemetry", "/oauth2/introspect");
    search.expect("the telemetry", "a refresh token was used twice");
    search.expect("/config", "secret_pepper");
    search.assert_hidden();
    database.drop_it().await;
}
