//! An edge in this process, and what stands around it.

pub(crate) mod issuer;
pub(crate) mod upstream;

use std::net::SocketAddr;
use std::path::PathBuf;

use chassis::config::{Common, parse_from};
use chassis::service::{Running, StartError};
use gateway::{Config, Gateway};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use issuer::Issuer;

/// A running edge whose tokens come from an [`Issuer`] of its own.
pub(crate) struct Edge {
    running: Running,
    pub(crate) issuer: Issuer,
    pub(crate) endpoints: EndpointsFile,
    http: Client,
}

impl Edge {
    pub(crate) async fn start(endpoints: EndpointsFile) -> Self {
        Self::start_with(endpoints, &[]).await
    }

    /// In front of these replicas of tour-data.
    pub(crate) async fn before(tour_data: &[SocketAddr]) -> Self {
        Self::start(EndpointsFile::new(tour_data, &[])).await
    }

    pub(crate) async fn start_with(endpoints: EndpointsFile, more: &[(&str, &str)]) -> Self {
        Self::start_as(Common::default(), endpoints, more).await
    }

    pub(crate) async fn start_as(common: Common, endpoints: EndpointsFile, more: &[(&str, &str)]) -> Self {
        let issuer = Issuer::start().await;
        let running = try_start(common, &endpoints.path(), &issuer, more)
            .await
            .expect("starts");
        let http = Client::builder().no_proxy().build().expect("a client");
        Self {
            running,
            issuer,
            endpoints,
            http,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.http_addr
    }

    /// A request without a token.
    pub(crate) fn anonymous(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.addr()))
    }

    /// A request with a good token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.anonymous(method, path).bearer_auth(self.issuer.token())
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.expect("answers")
    }

    pub(crate) async fn admin(&self, path: &str) -> Response {
        self.http
            .get(format!("http://{}{path}", self.running.admin_addr))
            .send()
            .await
            .expect("answers")
    }

    pub(crate) async fn shutdown(self) -> anyhow::Result<()> {
        self.running.shutdown().await
    }
}

pub(crate) async fn try_start(
    common: Common,
    endpoints: &str,
    issuer: &Issuer,
    more: &[(&str, &str)],
) -> Result<Running, StartError> {
    let jwks = issuer.jwks_url();
    let mut pairs = vec![
        ("GATEWAY_ENDPOINTS_FILE", endpoints),
        ("GATEWAY_AUTH_ISSUER", issuer::ISSUER),
        ("GATEWAY_AUTH_JWKS_URL", jwks.as_str()),
    ];
    pairs.extend_from_slice(more);
    let config = parse_from::<Config>("gateway", &pairs).expect("the settings are good");
    chassis::service::start::<Gateway>(common, config).await
}

/// An endpoints file, removed when dropped.
pub(crate) struct EndpointsFile(PathBuf);

impl EndpointsFile {
    pub(crate) fn new(tour_data: &[SocketAddr], user: &[SocketAddr]) -> Self {
        let file = Self(std::env::temp_dir().join(format!("endpoints-{}.json", Uuid::now_v7())));
        file.replace(tour_data, user);
        file
    }

    pub(crate) fn path(&self) -> String {
        self.0.to_str().expect("is UTF-8").to_owned()
    }

    /// Replicas that are taken to be ready.
    pub(crate) fn replace(&self, tour_data: &[SocketAddr], user: &[SocketAddr]) {
        let entries =
            |replicas: &[SocketAddr]| -> Vec<Value> { replicas.iter().map(|addr| json!({"http": addr})).collect() };
        self.replace_text(&json!({"services": {"tour-data": entries(tour_data), "user": entries(user)}}).to_string());
    }

    /// Replicas of tour-data that are asked whether they are ready.
    pub(crate) fn with_admin(tour_data: &[(SocketAddr, SocketAddr)]) -> Self {
        let file = Self::new(&[], &[]);
        let entries: Vec<Value> = tour_data
            .iter()
            .map(|(http, admin)| json!({"http": http, "admin": admin}))
            .collect();
        file.replace_text(&json!({"services": {"tour-data": entries}}).to_string());
        file
    }

    /// Atomically, by a rename.
    pub(crate) fn replace_text(&self, text: &str) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, text).expect("writes");
        std::fs::rename(&new, &self.0).expect("renames");
    }
}

impl Drop for EndpointsFile {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// The Redis that the tests share.
pub(crate) fn redis() -> String {
    std::env::var("ROWLOCK_TEST_REDIS").unwrap_or_else(|_| {
        panic!("ROWLOCK_TEST_REDIS is not set: run `cargo rowlock test`, which starts the servers this test needs")
    })
}

/// An address at which nobody listens.
pub(crate) async fn dead() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
    listener.local_addr().expect("has an address")
}

/// Asserts a problem of this status and type.
pub(crate) async fn assert_problem(response: Response, status: u16, slug: &str) {
    assert_eq!(response.status(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body: Value = response.json().await.expect("is JSON");
    assert_eq!(body["type"], format!("urn:rowlock:problem:{slug}"), "{body}");
    assert_eq!(body["status"], status, "{body}");
}

/// Asks again until `done` says so; a test that waits in vain fails after 20 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut done: impl FnMut() -> F) {
    for _ in 0..1000 {
        if done().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("never happened: {what}");
}
