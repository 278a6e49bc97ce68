//! The issuer: what every handler shares.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use chassis::readiness::{Dependency, Kind};
use chassis::service::StartError;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::access_token::AccessToken;
use crate::config::Config;
use crate::failure::Failure;
use crate::keys::Ring;
use crate::passwords::Passwords;
use crate::secret_hash::SecretHasher;
use crate::{scope, store};

/// Shared by all handlers; a clone is a reference.
#[derive(Clone)]
pub(crate) struct Issuer(Arc<Inner>);

struct Inner {
    url: String,
    audience: String,
    lifetime_s: i64,
    refresh_lifetime_s: i64,
    jwks_max_age_s: u64,
    registration_scopes: Vec<String>,
    hasher: SecretHasher,
    passwords: Passwords,
    pool: PgPool,
    /// Empty until the database answered for the first time.
    ring: ArcSwap<Ring>,
    waiting_for: Mutex<String>,
}

/// For whom a token is issued.
pub(crate) struct Bearer<'a> {
    pub(crate) sub: &'a str,
    pub(crate) client_id: &'a str,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) session: Option<Uuid>,
}

/// The longest that clients may keep the key set: as long as a default token lives.
const MAX_JWKS_AGE_S: u64 = 300;

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
        let seconds = |variable: &str, seconds: u64| match i64::try_from(seconds).unwrap_or(i64::MAX / 2) {
            0 => Err(StartError::Config(format!("{variable}: must be at least one second"))),
            seconds => Ok(seconds),
        };
        let registration_scopes = match config.registration_scopes.as_str() {
            "" => Vec::new(),
            scopes => {
                let scopes = scope::parse(scopes)
                    .map_err(|error| StartError::Config(format!("USER_REGISTRATION_SCOPES: {error}")))?;
                scopes.into_iter().map(str::to_owned).collect()
            }
        };
        Ok(Self(Arc::new(Inner {
            url: url.to_owned(),
            audience: config.audience.clone(),
            lifetime_s: seconds("USER_TOKEN_LIFETIME", config.token_lifetime.as_secs())?,
            refresh_lifetime_s: seconds("USER_REFRESH_LIFETIME", config.refresh_lifetime.as_secs())?,
            // Half of the notice a new key is given: whoever keeps the set for so long has the key before it signs.
            jwks_max_age_s: MAX_JWKS_AGE_S.min(config.key_lead.as_secs() / 2),
            registration_scopes,
            hasher: SecretHasher::new(config.secret_pepper.expose()),
            passwords: Passwords::new(config.secret_pepper.expose(), usize::from(config.hashes_at_once)),
            pool,
            ring: ArcSwap::default(),
            waiting_for: Mutex::new("the database has not answered yet".to_owned()),
        })))
    }

    /// The issuer identifier, without a trailing slash.
    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// Seconds an access token is good for.
    pub(crate) fn lifetime_s(&self) -> i64 {
        self.0.lifetime_s
    }

    /// Seconds a refresh token is good for.
    pub(crate) fn refresh_lifetime_s(&self) -> i64 {
        self.0.refresh_lifetime_s
    }

    /// Seconds the key set may be kept.
    pub(crate) fn jwks_max_age_s(&self) -> u64 {
        self.0.jwks_max_age_s
    }

    /// What an account that registers itself may do.
    pub(crate) fn registration_scopes(&self) -> &[String] {
        &self.0.registration_scopes
    }

    pub(crate) fn hasher(&self) -> &SecretHasher {
        &self.0.hasher
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.0.pool
    }

    /// The keys of this moment.
    pub(crate) fn ring(&self) -> Arc<Ring> {
        self.0.ring.load_full()
    }

    /// From now on these keys sign and verify.
    pub(crate) fn set_ring(&self, ring: Ring) {
        self.0.ring.store(Arc::new(ring));
    }

    /// Until keys, clients and users have been loaded, nobody can say that somebody is unknown.
    pub(crate) fn loaded(&self) -> Result<(), Failure> {
        match self.ring().signing(Instant::now()) {
            Some(_) => Ok(()),
            None => Err(Failure::NotReady),
        }
    }

    /// Issues an access token with the scopes `scope`, separated by spaces.
    ///
    /// Signs on a thread of the blocking pool: an RSA-2048 signature holds a core for 0.5 to 1 ms (0.9 measured on a small
    /// cloud machine), in which an async worker would serve some ten other requests; the hand-over costs about 20 µs.
    pub(crate) async fn issue(&self, bearer: &Bearer<'_>, scope: &str) -> Result<String, Failure> {
        let key = Arc::clone(self.ring().signing(Instant::now()).ok_or(Failure::NotReady)?);
        let issued_at = chrono::Utc::now().timestamp();
        let claims = AccessToken {
            iss: self.0.url.clone(),
            aud: self.0.audience.clone(),
            sub: bearer.sub.to_owned(),
            client_id: bearer.client_id.to_owned(),
            scope: scope.to_owned(),
            tenant: bearer.tenant.map(str::to_owned),
            sid: bearer.session,
            iat: issued_at,
            exp: issued_at + self.0.lifetime_s,
            jti: Uuid::new_v4().to_string(),
        };
        let claims = serde_json::to_vec(&claims).map_err(|error| Failure::Internal(error.to_string()))?;
        tokio::task::spawn_blocking(move || key.sign(&claims))
            .await
            .map_err(|panic| Failure::Internal(panic.to_string()))?
            .map_err(|error| Failure::Internal(format!("signing: {error}")))
    }

    /// The claims of an access token of ours that has not expired. Whether it was revoked is another question.
    pub(crate) fn read(&self, token: &str) -> Result<Option<AccessToken>, Failure> {
        self.loaded()?;
        let now = Instant::now();
        let ring = self.ring();
        let claims = AccessToken::signed(token, &ring, now);
        Ok(claims.filter(|claims| {
            claims.iss == self.0.url && claims.aud == self.0.audience && claims.exp > chrono::Utc::now().timestamp()
        }))
    }

    /// The claims of an access token that counts: ours, neither expired nor revoked.
    pub(crate) async fn active(&self, token: &str) -> Result<Option<AccessToken>, Failure> {
        let Some(claims) = self.read(token)? else {
            return Ok(None);
        };
        let find = async |connection: &mut PgConnection| {
            store::revocation::is_revoked(connection, &claims.jti, claims.sid).await
        };
        let revoked = chassis::db::read(self.pool(), find).await?;
        Ok((!revoked).then_some(claims))
    }

    /// Why there is no key yet, for `/readyz`.
    pub(crate) fn set_waiting_for(&self, reason: String) {
        *self.0.waiting_for.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Not ready until a signing key is loaded.
    pub(crate) fn dependency(&self) -> Dependency {
        let issuer = self.clone();
        Dependency::new("signing-key", Kind::Required, move || {
            let state = issuer.loaded().map_err(|_| {
                let waiting_for = issuer.0.waiting_for.lock();
                waiting_for.unwrap_or_else(PoisonError::into_inner).clone()
            });
            Box::pin(std::future::ready(state))
        })
    }
}
