//! One token against the pinned algorithm, the issuer's keys and the expected claims.

use jsonwebtoken::{Algorithm, Validation, errors::ErrorKind};
use serde_json::{Map, Value};

use super::{AuthConfig, AuthError, Claims, keys::Keys};
use crate::service::StartError;

/// Clocks of issuer and service may differ by this much.
const LEEWAY_SECONDS: u64 = 5;

/// Checks tokens with the issuer's public keys.
pub(super) struct Jwt {
    validation: Validation,
    keys: Keys,
    token_type: String,
    tenant_claim: String,
}

impl Jwt {
    pub(super) fn new(config: &AuthConfig) -> Result<Self, StartError> {
        // The list holds what we accept, and the token's header is only compared with it. Taking the algorithm from the
        // token would accept "none", or HS256 keyed with the public key.
        let mut validation = Validation::new(Algorithm::RS256);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[config.auth_issuer.as_str()]);
        validation.set_audience(&[&config.auth_audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Ok(Self {
            validation,
            keys: Keys::new(config)?,
            token_type: config.auth_token_type.clone(),
            tenant_claim: config.auth_tenant_claim.clone(),
        })
    }

    /// Fetches the issuer's keys in the background.
    pub(super) fn prefetch(&self) {
        tokio::spawn(self.keys.clone().prefetch());
    }

    /// Checks `bearer` and gives its claims.
    pub(super) async fn check(&self, bearer: &str) -> Result<Claims, AuthError> {
        let header = jsonwebtoken::decode_header(bearer)
            .map_err(|_| AuthError::InvalidToken("the token is not a signed JWT"))?;
        if header.alg != Algorithm::RS256 {
            return Err(AuthError::InvalidToken("the token is not signed with RS256"));
        }
        // RFC 7515, section 4.1.11: whoever does not know an extension must not accept what it guards. We know none.
        if header.crit.is_some() {
            return Err(AuthError::InvalidToken("the token asks for an extension (crit)"));
        }
        // RFC 9068, section 4: an ID token or any other JWT of the same issuer must not pass for an access token.
        if !header.typ.as_deref().is_some_and(|typ| self.is_access_token(typ)) {
            return Err(AuthError::InvalidToken("the token is not an access token (typ)"));
        }
        let kid = header
            .kid
            .ok_or(AuthError::InvalidToken("the token names no key (kid)"))?;
        let key = self.keys.get(&kid).await?;
        let token = jsonwebtoken::decode::<Map<String, Value>>(bearer, &key, &self.validation)
            .map_err(|error| AuthError::InvalidToken(reason(error.kind())))?;
        Claims::read(&token.claims, &self.tenant_claim)
    }

    /// Media types are compared without case, and `application/` may be left out (RFC 7515, section 4.1.9).
    fn is_access_token(&self, typ: &str) -> bool {
        let bare = match typ.split_at_checked("application/".len()) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case("application/") => rest,
            _ => typ,
        };
        bare.eq_ignore_ascii_case(&self.token_type)
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
