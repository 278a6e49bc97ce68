//! All SQL of the service.

pub(crate) mod client;
pub(crate) mod signing_key;
