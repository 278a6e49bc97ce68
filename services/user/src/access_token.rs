//! Access tokens as this service writes and reads them (RFC 9068).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::keys::Ring;

/// Claims of an access token (RFC 9068, section 2.2).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AccessToken {
    pub(crate) iss: String,
    pub(crate) aud: String,
    /// The id of the account, or the client that acts for itself.
    pub(crate) sub: String,
    pub(crate) client_id: String,
    /// Scopes, separated by spaces.
    pub(crate) scope: String,
    /// Key of the tenant for which the bearer acts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) tenant: Option<String>,
    /// The session it came from; it ends with that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) sid: Option<Uuid>,
    /// Seconds since 1970.
    pub(crate) iat: i64,
    pub(crate) exp: i64,
    pub(crate) jti: String,
}

impl AccessToken {
    /// The claims of `token` if one of the published keys signed it. Expiry and revocation are not looked at.
    pub(crate) fn signed(token: &str, ring: &Ring, now: std::time::Instant) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        // The header of our tokens never varies, so it is compared as it is: nothing in a token chooses how it is
        // checked, neither algorithm nor type.
        let key = ring.published(now).find(|key| key.header() == header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !key.verifies(signed.as_bytes(), &signature) {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
    }
}
