//! What must stay secret is in nothing the service prints, exports or answers, whatever it is asked.

use chassis::service::Service;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use user::User;

use crate::collector::Collector;
use crate::process::Process;
use crate::support::{Database, ISSUER, JsonFile, PASSWORD, SECRET, clients, config, eventually, users};

const PEPPER: &str = "pepper-0123456789abcdef";
const SEALING: &str = "sealing-0123456789abcdef";
const WRONG: &str = "wrong-but-nearly-right-0123456789";

/// Texts that may be shown nowhere, and those that were.
struct Found {
    secrets: Vec<(&'static str, String)>,
    shown: Vec<(String, String)>,
}

impl Found {
    fn secret(&mut self, what: &'static str, value: &Value) -> String {
        let value = value.as_str().unwrap_or_else(|| panic!("no {what}")).to_owned();
        // The last part of a token is what makes it one.
        let end = value.len().saturating_sub(40);
        self.secrets.push((what, value[end..].to_owned()));
        value
    }

    /// Sends a request that is to be refused and keeps the answer.
    async fn refused(&mut self, what: &str, request: RequestBuilder) {
        let response = request.send().await.expect("answers");
        let status = response.status();
        assert!(status.is_client_error(), "{what}: {status}");
        let headers = format!("{:?}", response.headers());
        let text = headers + &response.text().await.expect("is text");
        self.shown.push((what.to_owned(), text));
    }
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
    let process = Process::start(&[
        ("USER_ISSUER", ISSUER),
        ("USER_SECRET_PEPPER", PEPPER),
        ("USER_KEY_ENCRYPTION_SECRET", SEALING),
        ("USER_DB_URL", &database.url()),
        ("USER_CLIENTS_FILE", &clients.path()),
        ("USER_USERS_FILE", &users.path()),
        ("USER_LOG", "trace"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
    ]);
    let http = Client::builder().no_proxy().build().expect("a client");
    let ready = format!("http://{}/readyz", process.admin);
    eventually("the service is ready", async || {
        http.get(&ready).send().await.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    let post = |path: &str| http.post(format!("http://{}{path}", process.http));
    let form = |path: &str, client: &str, form: &[(&str, &str)]| post(path).basic_auth(client, Some(SECRET)).form(form);
    let mut found = Found {
        secrets: [
            ("client secret", SECRET),
            ("password", PASSWORD),
            ("mistyped secret", WRONG),
            ("pepper", PEPPER),
            ("key secret", SEALING),
        ]
        .map(|(what, value)| (what, value.to_owned()))
        .to_vec(),
        shown: Vec::new(),
    };
    let server = std::env::var("ROWLOCK_TEST_POSTGRES").expect("is set");
    if let Some((_, password)) = server.split_once('@').and_then(|(before, _)| before.rsplit_once(':'))
        && !password.starts_with("//")
    {
        found.secrets.push(("database password", password.to_owned()));
    }

    // Everything works once, with the secrets in it.
    let credentials = [("grant_type", "password"), ("username", "ada"), ("password", PASSWORD)];
    let tokens = json(
        form("/oauth2/token", "app", &credentials)
            .send()
            .await
            .expect("answers"),
    )
    .await;
    let access = found.secret("access token", &tokens["access_token"]);
    let first = found.secret("refresh token", &tokens["refresh_token"]);
    let refresh = [("grant_type", "refresh_token"), ("refresh_token", first.as_str())];
    let tokens = json(form("/oauth2/token", "app", &refresh).send().await.expect("answers")).await;
    let second = found.secret("second refresh token", &tokens["refresh_token"]);
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
    let bearer = found.secret("access token of a login", &login["accessToken"]);
    let session = found.secret("refresh token of a login", &login["refreshToken"]);
    let me = http
        .get(format!("http://{}/api/users/me", process.http))
        .bearer_auth(&bearer);
    json(me.send().await.expect("answers")).await;

    // And everything fails once, with secrets where they do not belong.
    found
        .refused(
            "a wrong secret",
            post("/oauth2/token").basic_auth("app", Some(WRONG)).form(&credentials),
        )
        .await;
    found
        .refused("a reused refresh token", form("/oauth2/token", "app", &refresh))
        .await;
    let twice = [
        ("grant_type", "password"),
        ("password", PASSWORD),
        ("password", PASSWORD),
    ];
    found
        .refused("a password twice", form("/oauth2/token", "app", &twice))
        .await;
    let odd = [("grant_type", PASSWORD), ("scope", SECRET), ("refresh_token", &second)];
    found
        .refused("a password as the grant", form("/oauth2/token", "app", &odd))
        .await;
    let not_asking = form("/oauth2/introspect", "app", &[("token", &access)]);
    found.refused("a client that may not ask", not_asking).await;
    let as_text = post("/oauth2/token").body(format!("password={PASSWORD}&client_secret={SECRET}"));
    found.refused("no form", as_text).await;
    let in_the_url = http.get(format!("http://{}/api/users/me?access_token={bearer}", process.http));
    found.refused("a token in the query", in_the_url).await;
    let bad_bearer = http
        .get(format!("http://{}/api/users/me", process.http))
        .bearer_auth(&second);
    found.refused("a refresh token as a bearer", bad_bearer).await;
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
        found.refused(what, post("/api/auth/login").json(&body)).await;
    }
    let cut = format!(r#"{{"username":"ada","password":"{PASSWORD}"#);
    let cut = post("/api/auth/login")
        .header("content-type", "application/json")
        .body(cut);
    found.refused("a body that ends too soon", cut).await;
    let out = post("/api/auth/logout").json(&json!({"refreshToken": session}));
    assert_eq!(out.send().await.expect("answers").status(), 204);
    let gone = post("/api/auth/refresh").json(&json!({"refreshToken": session}));
    found.refused("a refresh token of an ended session", gone).await;

    for path in ["/config", "/metrics", "/readyz"] {
        let page = http
            .get(format!("http://{}{path}", process.admin))
            .send()
            .await
            .expect("answers");
        found.shown.push((path.to_owned(), page.text().await.expect("is text")));
    }
    let printed = tokio::task::spawn_blocking(|| process.stop()).await.expect("stops");
    let exported = collector.text();
    // What is searched is really there.
    assert!(printed.contains("a refresh token was used twice"), "{printed}");
    assert!(exported.contains("/oauth2/introspect") && exported.contains("a refresh token was used twice"));
    assert!(
        found
            .shown
            .iter()
            .any(|(what, text)| what == "/config" && text.contains("secret_pepper"))
    );
    found.shown.push(("the log".to_owned(), printed));
    found.shown.push(("the telemetry".to_owned(), exported));

    for (place, text) in &found.shown {
        for (what, secret) in &found.secrets {
            let line = text.lines().find(|line| line.contains(secret.as_str()));
            assert!(line.is_none(), "the {what} is in {place}: {line:?}");
        }
    }
    database.drop_it().await;
}
