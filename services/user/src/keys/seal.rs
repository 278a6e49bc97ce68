//! Encryption of a private key at rest: AES-256-GCM under a key derived from a configured secret.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf;

/// The stored bytes do not open: the secret is another one, or the row was changed.
#[derive(Debug, thiserror::Error)]
#[error("the stored signing key does not open")]
pub(crate) struct WrongSecret;

/// Seals and opens private keys.
pub(crate) struct SealKey(RandomizedNonceKey);

impl SealKey {
    /// HKDF makes a full-length key of whatever length the secret has; the info string keeps the key from
    /// being shared with any other use of the same secret.
    pub(crate) fn derive(secret: &str) -> Result<Self, Unspecified> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"rowlock");
        let mut key = [0; 32];
        salt.extract(secret.as_bytes())
            .expand(&[b"user signing key v1"], hkdf::HKDF_SHA256)?
            .fill(&mut key)?;
        Ok(Self(RandomizedNonceKey::new(&AES_256_GCM, &key)?))
    }

    /// Nonce, ciphertext and tag. `kid` is authenticated with it: sealed bytes fit only their own row.
    pub(crate) fn seal(&self, kid: &str, private_key: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut sealed = private_key.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(kid), &mut sealed)?;
        sealed.splice(0..0, *nonce.as_ref());
        Ok(sealed)
    }

    /// The private key again.
    pub(crate) fn open(&self, kid: &str, sealed: &[u8]) -> Result<Vec<u8>, WrongSecret> {
        let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN).ok_or(WrongSecret)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| WrongSecret)?;
        let mut buffer = ciphertext.to_vec();
        let plain = self
            .0
            .open_in_place(nonce, Aad::from(kid), &mut buffer)
            .map_err(|_| WrongSecret)?;
        Ok(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_open_with_the_same_secret_and_kid_only() {
        let key = SealKey::derive("a secret of some length").expect("derives");
        let sealed = key.seal("kid-1", b"private").expect("seals");
        assert!(!sealed.windows(7).any(|window| window == b"private"));
        assert_eq!(key.open("kid-1", &sealed).expect("opens"), b"private");
        assert!(key.open("kid-2", &sealed).is_err());
        assert!(key.open("kid-1", &sealed[..8]).is_err());
        let other = SealKey::derive("another secret").expect("derives");
        assert!(other.open("kid-1", &sealed).is_err());
    }
}
