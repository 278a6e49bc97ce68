//! Names of the grant types.

/// A program asks for itself.
pub(crate) const CLIENT_CREDENTIALS: &str = "client_credentials";
/// A program asks for a user whose password it was told.
pub(crate) const PASSWORD: &str = "password";
/// A program prolongs what it has.
pub(crate) const REFRESH_TOKEN: &str = "refresh_token";

/// All that the token endpoint knows.
pub(crate) const ALL: [&str; 3] = [CLIENT_CREDENTIALS, PASSWORD, REFRESH_TOKEN];
