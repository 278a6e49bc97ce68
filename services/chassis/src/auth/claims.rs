//! What a token says about its bearer.

use serde::{Deserialize, Deserializer};

/// The claims of a checked access token (RFC 9068).
#[derive(Clone, Debug, Deserialize)]
pub struct Claims {
    /// Subject; for a client acting for itself the same as `client_id`.
    pub sub: String,
    /// The client the token was issued to.
    pub client_id: String,
    /// Key of the tenant the client belongs to, if it belongs to one.
    #[serde(default)]
    pub tenant: Option<String>,
    /// Granted scopes.
    #[serde(rename = "scope", default, deserialize_with = "space_separated")]
    pub scopes: Vec<String>,
    /// Expiry, in seconds since 1970.
    pub exp: i64,
}

fn space_separated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok(text
        .split(' ')
        .filter(|scope| !scope.is_empty())
        .map(str::to_owned)
        .collect())
}
