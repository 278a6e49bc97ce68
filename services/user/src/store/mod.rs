//! All SQL of the service.

pub(crate) mod account;
pub(crate) mod client;
pub(crate) mod revocation;
pub(crate) mod session;
pub(crate) mod signing_key;
