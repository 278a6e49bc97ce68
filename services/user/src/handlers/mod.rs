//! One endpoint a file.

mod credentials;
pub(crate) mod discovery;
pub(crate) mod jwks;
pub(crate) mod token;
