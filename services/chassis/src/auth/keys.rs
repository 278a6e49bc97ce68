//! The issuer's public keys, cached by `kid`.
//!
//! Keys that were fetched once keep working when the issuer is away: a restart of the issuer must not take every route
//! down. Fetching is single-flight and rate-limited, so that a flood of tokens with invented key ids costs the issuer
//! one request every few seconds.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use jsonwebtoken::{
    DecodingKey,
    jwk::{AlgorithmParameters, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse},
};
use tokio::sync::Mutex;

use super::{
    AuthConfig, AuthError,
    remote::{Remote, document},
};
use crate::service::StartError;

/// Keys older than this are refreshed in the background, so that a key the issuer withdrew stops working.
const REFRESH_AFTER: Duration = Duration::from_secs(5 * 60);
/// Between two requests for an unknown key while some keys are known.
const UNKNOWN_KID_INTERVAL: Duration = Duration::from_secs(5);
/// Between two requests while no key is known: the issuer may be starting beside us.
const FIRST_KEYS_INTERVAL: Duration = Duration::from_millis(500);

/// The cache; cloning shares it.
#[derive(Clone)]
pub(super) struct Keys(Arc<Inner>);

struct Inner {
    source: Source,
    known: ArcSwap<Known>,
    /// Held while fetching: whoever waits for it finds the result of the fetch that just ended.
    attempt: Mutex<Option<Attempt>>,
}

#[derive(Default)]
struct Known {
    keys: HashMap<String, Arc<DecodingKey>>,
    fetched: Option<Instant>,
}

struct Attempt {
    started: Instant,
    error: Option<String>,
}

impl Keys {
    pub(super) fn new(config: &AuthConfig) -> Result<Self, StartError> {
        Ok(Self(Arc::new(Inner {
            source: Source::new(config)?,
            known: ArcSwap::default(),
            attempt: Mutex::new(None),
        })))
    }

    /// Tries until keys are known, by whomever they were fetched. The issuer may be starting beside us: a try that fails is
    /// no reason to refuse the first token, which comes with a try of its own.
    pub(super) async fn prefetch(self) {
        let mut pause = FIRST_KEYS_INTERVAL;
        loop {
            {
                let _one_at_a_time = self.0.attempt.lock().await;
                if !self.0.known.load().keys.is_empty() || self.0.fetch().await.is_ok() {
                    return;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(UNKNOWN_KID_INTERVAL);
        }
    }

    /// The key with this id, fetched from the issuer if it is not known yet.
    pub(super) async fn get(&self, kid: &str) -> Result<Arc<DecodingKey>, AuthError> {
        let known = self.0.known.load();
        if let Some(key) = known.keys.get(kid) {
            if known.fetched.is_some_and(|fetched| fetched.elapsed() > REFRESH_AFTER)
                && self.0.attempt.try_lock().is_ok()
            {
                let inner = Arc::clone(&self.0);
                tokio::spawn(async move {
                    inner
                        .fetch_if_due(|known| known.fetched.is_some_and(|fetched| fetched.elapsed() <= REFRESH_AFTER))
                        .await
                });
            }
            return Ok(Arc::clone(key));
        }
        drop(known);

        // A task of its own: a client that disconnects would otherwise cut the fetch that others wait for.
        let inner = Arc::clone(&self.0);
        let wanted = kid.to_owned();
        let outcome = tokio::spawn(async move { inner.fetch_if_due(|known| known.keys.contains_key(&wanted)).await })
            .await
            .unwrap_or_else(|failed| Err(failed.to_string()));

        match (self.0.known.load().keys.get(kid), outcome) {
            (Some(key), _) => Ok(Arc::clone(key)),
            (None, Ok(())) => Err(AuthError::InvalidToken(
                "the token is signed with a key its issuer does not list",
            )),
            // The key may exist: with the issuer away nobody can say that the token is bad.
            (None, Err(reason)) => Err(AuthError::IssuerUnavailable(reason)),
        }
    }
}

impl Inner {
    /// Fetches the keys unless `satisfied` by what is known, or the last attempt is too recent; gives the outcome of the
    /// last attempt.
    async fn fetch_if_due(&self, satisfied: impl Fn(&Known) -> bool) -> Result<(), String> {
        let mut attempt = self.attempt.lock().await;
        let known = self.known.load();
        if satisfied(&known) {
            return Ok(());
        }
        let interval = if known.keys.is_empty() {
            FIRST_KEYS_INTERVAL
        } else {
            UNKNOWN_KID_INTERVAL
        };
        drop(known);
        if let Some(last) = attempt.as_ref().filter(|last| last.started.elapsed() < interval) {
            return last.error.clone().map_or(Ok(()), Err);
        }
        let started = Instant::now();
        let outcome = self.fetch().await;
        *attempt = Some(Attempt {
            started,
            error: outcome.clone().err(),
        });
        outcome
    }

    async fn fetch(&self) -> Result<(), String> {
        match self.source.fetch().await {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "fetched the issuer's keys");
                self.known.store(Arc::new(Known {
                    keys,
                    fetched: Some(Instant::now()),
                }));
                Ok(())
            }
            Err(error) => {
                let reason = format!("{error:#}");
                tracing::warn!(
                    reason,
                    "the issuer's keys could not be fetched; keys known so far stay in use"
                );
                Err(reason)
            }
        }
    }
}

/// Where the keys are.
struct Source {
    remote: Remote,
    jwks_url: Option<String>,
}

impl Source {
    fn new(config: &AuthConfig) -> Result<Self, StartError> {
        Ok(Self {
            remote: Remote::new(config)?,
            jwks_url: config.auth_jwks_url.as_ref().map(|url| url.as_str().to_owned()),
        })
    }

    async fn fetch(&self) -> anyhow::Result<HashMap<String, Arc<DecodingKey>>> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.remote.discover().await?.jwks_uri,
        };
        let set: JwkSet = document(&url, self.remote.client.get(&url)).await?;
        let keys: HashMap<_, _> = set.keys.iter().filter_map(signing_key).collect();
        anyhow::ensure!(!keys.is_empty(), "{url} lists no RS256 key with a kid");
        Ok(keys)
    }
}

/// Keys for encryption, of other types or for other algorithms are left out: the set is what may verify RS256.
fn signing_key(jwk: &Jwk) -> Option<(String, Arc<DecodingKey>)> {
    let common = &jwk.common;
    let kid = common.key_id.clone()?;
    let usable = matches!(jwk.algorithm, AlgorithmParameters::RSA(_))
        && matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
        && matches!(common.key_algorithm, None | Some(KeyAlgorithm::RS256));
    if !usable {
        return None;
    }
    DecodingKey::from_jwk(jwk).ok().map(|key| (kid, Arc::new(key)))
}
