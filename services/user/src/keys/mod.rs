//! The RSA keys that sign access tokens: how they are kept at rest, which of them signs, and how they take turns.

mod keeper;
mod ring;
mod seal;
mod signing;

pub(crate) use keeper::{Keeper, KeeperError, Turns};
pub(crate) use ring::Ring;
pub(crate) use seal::SealKey;
pub(crate) use signing::{Jwk, SigningKey};
