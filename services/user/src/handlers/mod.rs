//! One endpoint a file.

pub(crate) mod auth;
mod credentials;
pub(crate) mod discovery;
mod fields;
pub(crate) mod grant;
pub(crate) mod introspect;
pub(crate) mod jwks;
pub(crate) mod revoke;
pub(crate) mod token;
pub(crate) mod users;

/// Empty parameters count as absent (RFC 6749, section 3.1).
fn given(parameter: Option<String>) -> Option<String> {
    parameter.filter(|value| !value.is_empty())
}
