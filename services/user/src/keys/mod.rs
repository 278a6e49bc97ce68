//! The RSA key that signs access tokens, and how it is kept at rest.

mod seal;
mod signing;

pub(crate) use seal::SealKey;
pub(crate) use signing::{Jwk, SigningKey};
