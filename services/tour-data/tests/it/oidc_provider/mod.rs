//! Tokens of an issuer that is not ours: the npm package `oidc-provider`, a certified OpenID provider, as a process.

use std::path::PathBuf;
use std::process::Stdio;

use reqwest::Client;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{Database, TourService, server};

const TENANT_CLAIM: &str = "https://provider.test/organisation";

/// Ends with the test: its standard input closes, and it is killed if that should not do.
struct Provider {
    issuer: String,
    client: Client,
    _process: Child,
}

impl Provider {
    /// `format` of its access tokens: `jwt` or `opaque`.
    async fn start(format: &str) -> Self {
        let package = server("ROWLOCK_TEST_OIDC_PROVIDER");
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/oidc_provider/provider.mjs");
        let mut process = Command::new("node")
            .arg(script)
            .args([package.as_str(), "rowlock", TENANT_CLAIM, format])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node is installed");
        let mut lines = BufReader::new(process.stdout.take().expect("is piped")).lines();
        let Some(issuer) = lines.next_line().await.expect("is UTF-8") else {
            let output = process.wait_with_output().await.expect("ends");
            panic!("no provider: {}", String::from_utf8_lossy(&output.stderr));
        };
        Self {
            issuer,
            client: Client::builder().no_proxy().build().expect("a client"),
            _process: process,
        }
    }

    async fn token(&self, client: &str, scope: &str) -> String {
        let request = self.client.post(format!("{}/token", self.issuer));
        let form = [("grant_type", "client_credentials"), ("scope", scope)];
        let request = request.basic_auth(client, Some(format!("{client}-secret"))).form(&form);
        let body: Value = request.send().await.expect("answers").json().await.expect("is JSON");
        let token = body["access_token"].as_str();
        token.unwrap_or_else(|| panic!("no token in {body}")).to_owned()
    }

    /// Status and problem type of a read of the tenant BEHNGT.
    async fn read(&self, service: &TourService, client: &str, scope: &str) -> (u16, String) {
        let token = self.token(client, scope).await;
        let (status, body) = service.get_as("/api/v1/tenants/BEHNGT", &token).await;
        (
            status.as_u16(),
            body["type"]
                .as_str()
                .unwrap_or_default()
                .replace("urn:rowlock:problem:", ""),
        )
    }
}

fn answer(status: u16, problem: &str) -> (u16, String) {
    (status, problem.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_another_issuer_are_taken_as_configured_and_refused_otherwise() {
    let (database, provider) = (Database::create().await, Provider::start("jwt").await);
    let issuer = ("TOUR_DATA_AUTH_ISSUER", provider.issuer.as_str());
    let tenant = ("TOUR_DATA_AUTH_TENANT_CLAIM", TENANT_CLAIM);
    let start = async |settings: &[(&str, &str)]| TourService::start(&database, settings).await;

    let service = start(&[issuer, tenant]).await;
    assert_eq!(provider.read(&service, "tours", "tours:read").await, answer(200, ""));
    let other_scope = provider.read(&service, "tours", "tours:write").await;
    assert_eq!(other_scope, answer(403, "insufficient-scope"));
    assert_eq!(
        provider.read(&service, "others", "tours:read").await,
        answer(403, "tenant-mismatch")
    );
    // The issuer the service was started with first is as good as any other: not at all.
    let ours = service.issuer.token(Some("BEHNGT"), "tours:read");
    assert_eq!(service.get_as("/api/v1/tenants/BEHNGT", &ours).await.0, 401);

    for (what, settings, expected) in [
        ("another issuer", &[tenant][..], answer(401, "invalid-token")),
        (
            "another audience",
            &[issuer, tenant, ("TOUR_DATA_AUTH_AUDIENCE", "elsewhere")],
            answer(401, "invalid-token"),
        ),
        (
            "another token type",
            &[issuer, tenant, ("TOUR_DATA_AUTH_TOKEN_TYPE", "JWT")],
            answer(401, "invalid-token"),
        ),
        ("another tenant claim", &[issuer], answer(403, "tenant-mismatch")),
    ] {
        let service = start(settings).await;
        assert_eq!(provider.read(&service, "tours", "tours:read").await, expected, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_issuer_is_asked_about_its_tokens() {
    let (database, provider) = (Database::create().await, Provider::start("opaque").await);
    let settings = |secret| {
        [
            ("TOUR_DATA_AUTH_ISSUER", provider.issuer.as_str()),
            ("TOUR_DATA_AUTH_TENANT_CLAIM", TENANT_CLAIM),
            ("TOUR_DATA_AUTH_CHECK", "introspection"),
            ("TOUR_DATA_AUTH_CLIENT_ID", "tours"),
            ("TOUR_DATA_AUTH_CLIENT_SECRET", secret),
        ]
    };
    let service = TourService::start(&database, &settings("tours-secret")).await;
    assert_eq!(provider.read(&service, "tours", "tours:read").await, answer(200, ""));
    let other_scope = provider.read(&service, "tours", "tours:write").await;
    assert_eq!(other_scope, answer(403, "insufficient-scope"));
    assert_eq!(
        provider.read(&service, "others", "tours:read").await,
        answer(403, "tenant-mismatch")
    );
    let (status, _) = service.get_as("/api/v1/tenants/BEHNGT", "invented-token").await;
    assert_eq!(status, 401);
    let service = TourService::start(&database, &settings("wrong")).await;
    let refused = provider.read(&service, "tours", "tours:read").await;
    assert_eq!(
        refused,
        answer(503, "issuer-unavailable"),
        "a service that may not ask lets nobody in"
    );
}
