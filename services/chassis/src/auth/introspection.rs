//! One token, asked about at the issuer (RFC 7662).

use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::sync::{OnceCell, Semaphore};

use super::{
    AuthConfig, AuthError, Claims,
    remote::{Remote, document},
};
use crate::{config::Secret, service::StartError};

/// Questions on their way at once: a flood of invented tokens must not become a flood at the issuer.
const AT_ONCE: usize = 128;
/// From the arrival of a token until the answer to its bearer, the wait for one's turn included.
const WITHIN: Duration = Duration::from_secs(2);

/// Asks the issuer about tokens.
pub(super) struct Introspection {
    remote: Remote,
    /// Empty until it is first needed, if discovery has to tell.
    url: OnceCell<String>,
    client_id: String,
    client_secret: Secret,
    issuer: String,
    audience: String,
    tenant_claim: String,
    turns: Semaphore,
}

const INACTIVE: AuthError = AuthError::InvalidToken("the token is not active");

impl Introspection {
    pub(super) fn new(config: &AuthConfig) -> Result<Self, StartError> {
        let (Some(client_id), Some(client_secret)) = (&config.auth_client_id, &config.auth_client_secret) else {
            return Err(StartError::Config(
                "auth_client_id and auth_client_secret must be set when auth_check is introspection".to_owned(),
            ));
        };
        let url = config
            .auth_introspection_url
            .as_ref()
            .map(|url| url.as_str().to_owned());
        Ok(Self {
            remote: Remote::new(config)?,
            url: OnceCell::new_with(url),
            client_id: form_encode(client_id),
            client_secret: client_secret.clone(),
            issuer: config.auth_issuer.as_str().to_owned(),
            audience: config.auth_audience.clone(),
            tenant_claim: config.auth_tenant_claim.clone(),
            turns: Semaphore::new(AT_ONCE),
        })
    }

    /// Asks about `bearer`. Whatever goes wrong on the way says nothing about the token, and lets nobody in.
    pub(super) async fn check(&self, bearer: &str) -> Result<Claims, AuthError> {
        let asked = tokio::time::timeout(WITHIN, async {
            let _turn = self.turns.acquire().await?;
            self.ask(bearer).await
        });
        let answer = match asked.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(AuthError::IssuerUnavailable(format!("{error:#}"))),
            Err(_) => {
                let reason = format!("no answer within {} s", WITHIN.as_secs());
                return Err(AuthError::IssuerUnavailable(reason));
            }
        };
        self.judge(&answer)
    }

    async fn ask(&self, bearer: &str) -> anyhow::Result<Map<String, Value>> {
        let url = self.url.get_or_try_init(|| self.discovered()).await?;
        let request = self
            .remote
            .client
            .post(url)
            .basic_auth(&self.client_id, Some(form_encode(self.client_secret.expose())))
            .form(&[("token", bearer), ("token_type_hint", "access_token")]);
        document(url, request).await
    }

    async fn discovered(&self) -> anyhow::Result<String> {
        let discovery = self.remote.discover().await?;
        discovery
            .introspection_endpoint
            .context("the issuer's discovery document names no introspection endpoint; set auth_introspection_url")
    }

    /// The issuer has checked signature and time; whose token it is and what for remains ours to compare.
    fn judge(&self, answer: &Map<String, Value>) -> Result<Claims, AuthError> {
        if answer.get("active") != Some(&Value::Bool(true)) {
            return Err(INACTIVE);
        }
        // A refresh token is active, too, and no access token.
        if let Some(kind) = answer.get("token_type")
            && !kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"))
        {
            return Err(AuthError::InvalidToken("the token is not an access token"));
        }
        if answer.get("iss").is_some_and(|iss| iss != self.issuer.as_str()) {
            return Err(AuthError::InvalidToken("the token comes from another issuer"));
        }
        let meant_for_us = match answer.get("aud") {
            Some(Value::Array(list)) => list.iter().any(|audience| audience == self.audience.as_str()),
            Some(audience) => audience == self.audience.as_str(),
            None => false,
        };
        if !meant_for_us {
            return Err(AuthError::InvalidToken("the token is meant for another audience"));
        }
        Claims::read(answer, &self.tenant_claim)
    }
}

/// RFC 6749, section 2.3.1: both halves of client credentials are form-encoded before they go into the Basic scheme.
fn form_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'*' | b'-' | b'.' | b'_' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_form_encoded() {
        assert_eq!(form_encode("aZ9*-._"), "aZ9*-._");
        assert_eq!(form_encode("a:b c%ü"), "a%3Ab+c%25%C3%BC");
    }
}
