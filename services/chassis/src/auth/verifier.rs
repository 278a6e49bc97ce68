//! One bearer token, checked in the configured way.

use std::sync::Arc;

use super::{
    AuthConfig, AuthError, Check, Claims,
    cache::{self, Cache},
    introspection::Introspection,
    jwt::Jwt,
};
use crate::service::StartError;

/// Longer tokens are refused unread: ours have less than 1 KiB, and the check costs time proportional to the length.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// Checks access tokens. Cloning is cheap; all clones share what was learnt from the issuer.
#[derive(Clone)]
pub struct Verifier {
    shared: Arc<Shared>,
}

struct Shared {
    method: Method,
    cache: Option<Cache>,
}

enum Method {
    Jwks(Jwt),
    Introspection(Introspection),
}

impl Verifier {
    /// Prepares the check. The issuer need not be reachable yet: it is asked when the first token comes, or by
    /// [`prefetch`](Self::prefetch).
    pub fn new(config: &AuthConfig) -> Result<Self, StartError> {
        let method = match config.auth_check {
            Check::Jwks => Method::Jwks(Jwt::new(config)?),
            Check::Introspection => Method::Introspection(Introspection::new(config)?),
        };
        let cache = (!config.auth_cache.is_zero()).then(|| Cache::new(*config.auth_cache));
        Ok(Self {
            shared: Arc::new(Shared { method, cache }),
        })
    }

    /// Begins to fetch the issuer's keys and tries until they are there, so that the first request finds them; does
    /// nothing where the issuer is asked about each token.
    pub fn prefetch(&self) {
        if let Method::Jwks(jwt) = &self.shared.method {
            jwt.prefetch();
        }
    }

    /// Checks `bearer`, the token without its scheme, and gives its claims.
    pub async fn verify(&self, bearer: &str) -> Result<Claims, AuthError> {
        if bearer.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::InvalidToken("the token is longer than 8 KiB"));
        }
        if !is_token(bearer) {
            return Err(AuthError::InvalidToken("the token holds characters that no token has"));
        }
        let Some(cache) = &self.shared.cache else {
            return self.check(bearer).await;
        };
        let key = cache::key(bearer);
        if let Some(claims) = cache.get(&key) {
            return Ok(claims);
        }
        let claims = self.check(bearer).await?;
        cache.put(key, &claims);
        Ok(claims)
    }

    async fn check(&self, bearer: &str) -> Result<Claims, AuthError> {
        match &self.shared.method {
            Method::Jwks(jwt) => jwt.check(bearer).await,
            Method::Introspection(introspection) => introspection.check(bearer).await,
        }
    }
}

/// The grammar of RFC 6750, section 2.1: an issuer need not be asked about anything else.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/'))
}
