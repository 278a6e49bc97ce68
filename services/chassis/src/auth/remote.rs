//! The issuer over HTTP: bounded in time and size, and never anywhere else than the configuration says.

use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::AuthConfig;
use crate::config::Address;
use crate::service::StartError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Below the time after which servers close a connection that rests, so that a question rarely meets one that is just
/// being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// Bound on each document: discovery, key set, introspection answer.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024;

/// A client for one issuer.
pub(super) struct Remote {
    pub(super) client: reqwest::Client,
    issuer: String,
}

/// What is used of the discovery document.
#[derive(Deserialize)]
pub(super) struct Discovery {
    issuer: String,
    pub(super) jwks_uri: String,
    pub(super) introspection_endpoint: Option<String>,
}

impl Remote {
    pub(super) fn new(config: &AuthConfig) -> Result<Self, StartError> {
        for (name, address) in [
            ("auth_issuer", Some(&config.auth_issuer)),
            ("auth_jwks_url", config.auth_jwks_url.as_ref()),
            ("auth_introspection_url", config.auth_introspection_url.as_ref()),
        ] {
            if let Some(address) = address {
                check(name, address)?;
            }
        }
        // No proxy from the environment and no redirect: the issuer decides who gets in, so it is asked where the
        // configuration says and nowhere else.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .pool_idle_timeout(IDLE_CONNECTION)
            .build()
            .map_err(|error| {
                StartError::Unavailable(anyhow::Error::new(error).context("the HTTP client for the token issuer"))
            })?;
        Ok(Self {
            client,
            issuer: config.auth_issuer.as_str().to_owned(),
        })
    }

    /// The discovery document, which must be the issuer's own.
    pub(super) async fn discover(&self) -> anyhow::Result<Discovery> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let discovery: Discovery = document(&url, self.client.get(&url)).await?;
        anyhow::ensure!(
            discovery.issuer == self.issuer,
            "{url} names the issuer {:?} instead of {:?}",
            discovery.issuer,
            self.issuer
        );
        Ok(discovery)
    }
}

/// Sends `request` and reads the JSON it is answered with. Nothing of the answer gets into an error: it may be about a
/// token.
pub(super) async fn document<T: DeserializeOwned>(url: &str, request: reqwest::RequestBuilder) -> anyhow::Result<T> {
    let mut response = request.send().await.with_context(|| format!("no answer from {url}"))?;
    anyhow::ensure!(response.status().is_success(), "{url} answered {}", response.status());
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .with_context(|| format!("the answer of {url} broke off"))?
    {
        anyhow::ensure!(
            body.len() + chunk.len() <= MAX_DOCUMENT_BYTES,
            "{url} answered more than 64 KiB"
        );
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body)
        .ok()
        .with_context(|| format!("{url} did not answer the expected JSON"))
}

fn check(name: &str, address: &Address) -> Result<(), StartError> {
    let url = reqwest::Url::parse(address.as_str())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| StartError::Config(format!("{name} is {address:?}, which is not an http or https URL")))?;
    // It is named in logs when the issuer does not answer.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(StartError::Config(format!(
            "{name} must not hold a user or a password; give auth_client_id and auth_client_secret instead"
        )));
    }
    Ok(())
}
