//! One token against the pinned algorithm, the issuer's keys and the expected claims.

use std::sync::Arc;

use jsonwebtoken::{Algorithm, Validation, errors::ErrorKind};

use super::{AuthConfig, AuthError, Claims, keys::Keys};
use crate::service::StartError;

/// Longer tokens are refused unread: ours have less than 1 KiB, and the check costs time proportional to the length.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// Clocks of issuer and service may differ by this much.
const LEEWAY_SECONDS: u64 = 5;

/// Checks access tokens. Cloning is cheap; all clones share the cached keys.
#[derive(Clone)]
pub struct Verifier {
    shared: Arc<Shared>,
}

struct Shared {
    validation: Validation,
    keys: Keys,
}

impl Verifier {
    /// Prepares the check. The issuer need not be reachable yet: its keys are fetched when the first token comes.
    pub fn new(config: &AuthConfig) -> Result<Self, StartError> {
        // The list holds what we accept, and the token's header is only compared with it. Taking the algorithm from the
        // token would accept "none", or HS256 keyed with the public key.
        let mut validation = Validation::new(Algorithm::RS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[config.auth_issuer.as_str()]);
        validation.set_audience(&[&config.auth_audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let keys = Keys::new(config)?;
        Ok(Self {
            shared: Arc::new(Shared { validation, keys }),
        })
    }

    /// Checks `bearer`, the token without its scheme, and gives its claims.
    pub async fn verify(&self, bearer: &str) -> Result<Claims, AuthError> {
        if bearer.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::InvalidToken("the token is longer than 8 KiB"));
        }
        let header = jsonwebtoken::decode_header(bearer)
            .map_err(|_| AuthError::InvalidToken("the token is not a signed JWT"))?;
        if header.alg != Algorithm::RS256 {
            return Err(AuthError::InvalidToken("the token is not signed with RS256"));
        }
        // RFC 9068, section 4: an ID token or any other JWT of the same issuer must not pass for an access token.
        let is_access_token = header
            .typ
            .as_deref()
            .is_some_and(|typ| typ.eq_ignore_ascii_case("at+jwt") || typ.eq_ignore_ascii_case("application/at+jwt"));
        if !is_access_token {
            return Err(AuthError::InvalidToken("the token is not an access token (typ at+jwt)"));
        }
        let kid = header
            .kid
            .ok_or(AuthError::InvalidToken("the token names no key (kid)"))?;
        let key = self.shared.keys.get(&kid).await?;
        jsonwebtoken::decode(bearer, &key, &self.shared.validation)
            .map(|token| token.claims)
            .map_err(|error| AuthError::InvalidToken(reason(error.kind())))
    }
}

fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token comes from another issuer",
        ErrorKind::InvalidAudience => "the token is meant for another audience",
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => {
            "the token lacks a claim or holds a malformed one"
        }
        _ => "the signature of the token does not hold",
    }
}
