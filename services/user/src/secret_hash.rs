//! Client secrets and refresh tokens are stored as HMAC-SHA256 under a pepper.
//!
//! Not a password hash on purpose: both are generated (`clients` refuses short secrets), so there is nothing to guess,
//! and a token per request must not cost 50 ms of CPU.

use aws_lc_rs::{constant_time, hmac};

/// Length of a stored hash in bytes.
pub(crate) const LEN: usize = 32;

/// Hashes and checks generated secrets.
#[derive(Clone)]
pub(crate) struct SecretHasher(hmac::Key);

impl SecretHasher {
    pub(crate) fn new(pepper: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, pepper.as_bytes()))
    }

    /// The hash is bound to the client, so that a row copied onto another client opens nothing.
    pub(crate) fn hash(&self, client_id: &str, secret: &str) -> [u8; LEN] {
        let mut context = hmac::Context::with_key(&self.0);
        // The length in front keeps ("ab", "c") and ("a", "bc") apart.
        context.update(&(client_id.len() as u64).to_be_bytes());
        context.update(client_id.as_bytes());
        context.update(secret.as_bytes());
        let mut hash = [0; LEN];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }

    /// Of a refresh token.
    pub(crate) fn hash_token(&self, token: &str) -> [u8; LEN] {
        let mut context = hmac::Context::with_key(&self.0);
        // No client id is so long: the hash of a token is the hash of no client's secret.
        context.update(&u64::MAX.to_be_bytes());
        context.update(token.as_bytes());
        let mut hash = [0; LEN];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }

    /// `stored` is `None` for a client that does not exist; the same work is done then, so that the time of
    /// the answer does not tell which client ids are taken.
    pub(crate) fn verify(&self, client_id: &str, secret: &str, stored: Option<&[u8]>) -> bool {
        let presented = self.hash(client_id, secret);
        let expected = stored.unwrap_or(&[0; LEN]);
        let equal = constant_time::verify_slices_are_equal(&presented, expected).is_ok();
        equal & stored.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_of_the_right_client_verifies() {
        let hasher = SecretHasher::new("a pepper of some length");
        let stored = hasher.hash("alice", "secret");
        assert!(hasher.verify("alice", "secret", Some(&stored)));
        assert!(!hasher.verify("alice", "Secret", Some(&stored)));
        assert!(!hasher.verify("bob", "secret", Some(&stored)));
        assert!(!hasher.verify("alice", "secret", None));
        assert!(!SecretHasher::new("another pepper").verify("alice", "secret", Some(&stored)));
    }

    #[test]
    fn client_and_secret_do_not_run_into_each_other() {
        let hasher = SecretHasher::new("a pepper of some length");
        assert_ne!(hasher.hash("ab", "c"), hasher.hash("a", "bc"));
    }
}
