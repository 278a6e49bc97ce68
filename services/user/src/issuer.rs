//! The issuer: what every handler shares.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chassis::readiness::{Dependency, Kind};
use chassis::service::StartError;
use serde::Serialize;
use sqlx::PgPool;

use crate::config::Config;
use crate::keys::SigningKey;
use crate::secret_hash::SecretHasher;

/// Shared by all handlers; a clone is a reference.
#[derive(Clone)]
pub(crate) struct Issuer(Arc<Inner>);

struct Inner {
    url: String,
    audience: String,
    lifetime_s: i64,
    hasher: SecretHasher,
    pool: PgPool,
    /// Empty until the database answered for the first time.
    key: OnceLock<Arc<SigningKey>>,
    waiting_for: Mutex<String>,
}

/// Claims of an access token (RFC 9068, section 2.2).
#[derive(Serialize)]
pub(crate) struct AccessToken<'a> {
    pub(crate) iss: &'a str,
    pub(crate) aud: &'a str,
    pub(crate) sub: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) scope: &'a str,
    /// Key of the tenant for which the client acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<&'a str>,
    /// Seconds since 1970.
    pub(crate) iat: i64,
    pub(crate) exp: i64,
    pub(crate) jti: String,
}

impl Issuer {
    pub(crate) fn new(config: &Config, pool: PgPool) -> Result<Self, StartError> {
        // Verifiers compare the issuer character for character, so it is refused rather than repaired.
        let url = config.issuer.as_str();
        let scheme_ok = url.starts_with("http://") || url.starts_with("https://");
        if !scheme_ok || url.contains(['?', '#']) || url.ends_with('/') {
            return Err(StartError::Config(format!(
                "USER_ISSUER: {:?} must be an http or https URL without query, fragment and trailing slash",
                config.issuer
            )));
        }
        let lifetime_s = i64::try_from(config.token_lifetime.as_secs()).unwrap_or(i64::MAX / 2);
        if lifetime_s == 0 {
            return Err(StartError::Config(
                "USER_TOKEN_LIFETIME: must be at least one second".to_owned(),
            ));
        }
        Ok(Self(Arc::new(Inner {
            url: url.to_owned(),
            audience: config.audience.clone(),
            lifetime_s,
            hasher: SecretHasher::new(config.secret_pepper.expose()),
            pool,
            key: OnceLock::new(),
            waiting_for: Mutex::new("the database has not answered yet".to_owned()),
        })))
    }

    /// The issuer identifier, without a trailing slash.
    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    pub(crate) fn audience(&self) -> &str {
        &self.0.audience
    }

    /// Seconds.
    pub(crate) fn lifetime_s(&self) -> i64 {
        self.0.lifetime_s
    }

    pub(crate) fn hasher(&self) -> &SecretHasher {
        &self.0.hasher
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    /// `None` until the key was loaded.
    pub(crate) fn key(&self) -> Option<&Arc<SigningKey>> {
        self.0.key.get()
    }

    /// From now on tokens can be issued.
    pub(crate) fn set_key(&self, key: SigningKey) {
        // The bootstrap ends after its first success, so the cell is empty here.
        let _ = self.0.key.set(Arc::new(key));
    }

    /// Why there is no key yet, for `/readyz`.
    pub(crate) fn set_waiting_for(&self, reason: String) {
        *self.0.waiting_for.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Not ready until the signing key is loaded.
    pub(crate) fn dependency(&self) -> Dependency {
        let issuer = self.clone();
        Dependency::new("signing-key", Kind::Required, move || {
            let state = match issuer.key() {
                Some(_) => Ok(()),
                None => Err(issuer
                    .0
                    .waiting_for
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone()),
            };
            Box::pin(std::future::ready(state))
        })
    }
}
