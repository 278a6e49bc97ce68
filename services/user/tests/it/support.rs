//! A database of its own and a running issuer for each test.

use chassis::auth::{AuthConfig, Verifier};
use chassis::config::{Common, parse_from};
use chassis::service::{Running, Service, StartError};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use user::{Config, User};
use uuid::Uuid;

pub(crate) const ISSUER: &str = "http://issuer.test";
pub(crate) const SECRET: &str = "load-secret-0123456789abcdef";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A database that exists until [`Database::drop_it`]; a failed test leaves it behind for a look.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Migrated.
    pub(crate) async fn create() -> Self {
        let database = Self::create_empty().await;
        User::migrate(config(&database, &[])).await.expect("migrates");
        database
    }

    /// Without a table.
    pub(crate) async fn create_empty() -> Self {
        let database = Self::named().await;
        database.create_now().await;
        database
    }

    /// Only a name: the server answers that there is no such database.
    pub(crate) async fn named() -> Self {
        let server = std::env::var("ROWLOCK_TEST_POSTGRES")
            .expect("run `cargo rowlock test`, which starts the servers this test needs");
        let server = server.trim_end_matches('/').to_owned();
        Self {
            server,
            name: format!("user_test_{}", Uuid::new_v4().simple()),
        }
    }

    pub(crate) async fn create_now(&self) {
        self.administer(format!("CREATE DATABASE {}", self.name)).await;
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.expect("connects")
    }

    pub(crate) async fn drop_it(self) {
        self.administer(format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await;
    }

    async fn administer(&self, statement: String) {
        let mut server = PgConnection::connect(&format!("{}/postgres", self.server))
            .await
            .expect("connects");
        server.execute(AssertSqlSafe(statement)).await.expect("is allowed");
    }
}

/// Settings of an issuer on `database`; `more` adds variables or replaces them.
pub(crate) fn config(database: &Database, more: &[(&str, &str)]) -> Config {
    let url = database.url();
    let mut pairs = vec![
        ("USER_ISSUER", ISSUER),
        ("USER_SECRET_PEPPER", "pepper-pepper-pepper"),
        ("USER_KEY_ENCRYPTION_SECRET", "sealing-sealing-sealing"),
        ("USER_DB_URL", url.as_str()),
    ];
    pairs.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    pairs.extend_from_slice(more);
    parse_from::<Config>("user", &pairs).expect("the settings are good")
}

/// `load` and `reader` ask for themselves; `app` asks for users, `other` of its tenant only; `edge` asks about tokens.
pub(crate) fn clients() -> Value {
    let all = ["client_credentials", "password", "refresh_token"];
    json!([
        {"client_id": "load", "client_secret": SECRET, "tenant": "BEHNGT", "scopes": ["tours:read", "tours:write"]},
        {"client_id": "reader", "client_secret": SECRET, "scopes": ["tours:read"]},
        {"client_id": "powerless", "client_secret": SECRET, "scopes": []},
        {"client_id": "app", "client_secret": SECRET, "scopes": ["tours:read", "tours:write"], "grants": all},
        {"client_id": "other", "client_secret": SECRET, "tenant": "NORDEX", "scopes": ["tours:read"], "grants": all},
        {"client_id": "edge", "client_secret": SECRET, "scopes": [], "introspect": true},
    ])
}

/// `ada` of BEHNGT, and `bob` without a tenant.
pub(crate) fn users() -> Value {
    json!([
        {"username": "ada", "password": PASSWORD, "tenant": "BEHNGT", "scopes": ["tours:read", "tours:write", "admin"]},
        {"username": "bob", "password": PASSWORD, "scopes": ["tours:read"]},
    ])
}

/// An issuer in this process.
pub(crate) struct Issuer {
    running: Running,
    http: Client,
}

impl Issuer {
    pub(crate) async fn start(config: Config) -> Result<Self, StartError> {
        let running = chassis::service::start::<User>(Common::default(), config).await?;
        let http = Client::builder().no_proxy().build().expect("a client");
        Ok(Self { running, http })
    }

    /// On `database`, with [`clients`] and [`users`].
    pub(crate) async fn with_clients(database: &Database) -> Self {
        Self::with_clients_and(database, &[]).await
    }

    /// The same with settings of the test's own.
    pub(crate) async fn with_clients_and(database: &Database, more: &[(&str, &str)]) -> Self {
        let (clients, users) = (JsonFile::write(&clients()), JsonFile::write(&users()));
        let (clients, users) = (clients.path(), users.path());
        let files = [
            ("USER_CLIENTS_FILE", clients.as_str()),
            ("USER_USERS_FILE", users.as_str()),
        ];
        let issuer = Self::start(config(database, &[&files, more].concat()))
            .await
            .expect("starts");
        // The files have been read by now; on a busy machine they may not be in the database yet.
        eventually("the service is ready", async || {
            issuer.admin("/readyz").await.status() == 200
        })
        .await;
        issuer
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.http_addr)
    }

    pub(crate) async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(self.url(path)).send().await.expect("answers")
    }

    pub(crate) async fn admin(&self, path: &str) -> reqwest::Response {
        self.http
            .get(format!("http://{}{path}", self.running.admin_addr))
            .send()
            .await
            .expect("answers")
    }

    /// `POST /oauth2/token`, still to be given credentials and parameters.
    pub(crate) fn token(&self) -> RequestBuilder {
        self.http.post(self.url("/oauth2/token"))
    }

    /// `POST`, still to be given everything else.
    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(self.url(path))
    }

    /// `POST` of a form in the name of a client.
    pub(crate) async fn form(&self, path: &str, client: &str, form: &[(&str, &str)]) -> reqwest::Response {
        let request = self.http.post(self.url(path)).basic_auth(client, Some(SECRET));
        request.form(form).send().await.expect("answers")
    }

    /// The answer to a password grant of `ada` at the client `app`.
    pub(crate) async fn ada(&self) -> Value {
        let form = [("grant_type", "password"), ("username", "ada"), ("password", PASSWORD)];
        let response = self.form("/oauth2/token", "app", &form).await;
        assert_eq!(response.status(), 200);
        response.json().await.expect("is JSON")
    }

    /// What the client `edge` is told about a token.
    pub(crate) async fn introspect(&self, token: &str) -> Value {
        let response = self.form("/oauth2/introspect", "edge", &[("token", token)]).await;
        assert_eq!(response.status(), 200);
        response.json().await.expect("is JSON")
    }

    /// `POST` of JSON.
    pub(crate) async fn json(&self, path: &str, body: &Value) -> reqwest::Response {
        self.http.post(self.url(path)).json(body).send().await.expect("answers")
    }

    /// `GET` with a bearer token.
    pub(crate) async fn get_as(&self, path: &str, token: &str) -> reqwest::Response {
        self.http
            .get(self.url(path))
            .bearer_auth(token)
            .send()
            .await
            .expect("answers")
    }

    /// The token of the client `load`.
    pub(crate) async fn load_token(&self) -> String {
        let response = self
            .token()
            .basic_auth("load", Some(SECRET))
            .form(&[("grant_type", "client_credentials")]);
        let body: Value = response.send().await.expect("answers").json().await.expect("is JSON");
        body["access_token"]
            .as_str()
            .unwrap_or_else(|| panic!("no token in {body}"))
            .to_owned()
    }

    /// Checks tokens the way every service does, with the keys this issuer serves.
    pub(crate) fn verifier(&self) -> Verifier {
        let jwks = self.url("/oauth2/jwks");
        let pairs = [("TEST_AUTH_ISSUER", ISSUER), ("TEST_AUTH_JWKS_URL", jwks.as_str())];
        Verifier::new(&parse_from::<AuthConfig>("test", &pairs).expect("the settings are good")).expect("a verifier")
    }

    pub(crate) async fn stop(self) {
        self.running.shutdown().await.expect("stops in order");
    }
}

/// A clients or users file, removed when dropped.
pub(crate) struct JsonFile(std::path::PathBuf);

impl JsonFile {
    pub(crate) fn write(entries: &Value) -> Self {
        let path = std::env::temp_dir().join(format!("user-test-{}.json", Uuid::new_v4()));
        std::fs::write(&path, entries.to_string()).expect("writes");
        Self(path)
    }

    pub(crate) fn path(&self) -> String {
        self.0.to_str().expect("is UTF-8").to_owned()
    }
}

impl Drop for JsonFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Asks again until `done` says so; a test that waits in vain fails after 20 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    for _ in 0..400 {
        if done().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("never happened: {what}");
}
