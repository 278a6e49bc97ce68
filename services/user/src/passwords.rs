//! Passwords as argon2id, a bounded number at a time.
//!
//! One hash takes 19 MiB and some 30 ms of a core. Without a bound, a few hundred logins at once would take all memory
//! and keep every other request from its turn; with it they queue, and those that queue too long are told to come back.

use std::sync::Arc;
use std::time::Duration;

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::{constant_time, rand};
use tokio::sync::Semaphore;

use crate::failure::Failure;

/// The least that OWASP recommends for argon2id with one lane (Password Storage Cheat Sheet): 19 MiB, two passes.
const KIB: i32 = 19 * 1024;
const PASSES: i32 = 2;
const HASH_LEN: usize = 32;
const SALT_LEN: usize = 16;
/// How long a request queues for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(3);

/// A password as it is stored.
#[derive(sqlx::FromRow)]
pub(crate) struct Hashed {
    #[sqlx(rename = "password_hash")]
    pub(crate) hash: Vec<u8>,
    #[sqlx(rename = "password_salt")]
    pub(crate) salt: Vec<u8>,
    #[sqlx(rename = "password_kib")]
    pub(crate) kib: i32,
    #[sqlx(rename = "password_passes")]
    pub(crate) passes: i32,
}

/// Hashes and checks passwords; a clone shares the bound.
#[derive(Clone)]
pub(crate) struct Passwords {
    pepper: Arc<str>,
    turns: Arc<Semaphore>,
    queue_timeout: Duration,
}

impl Passwords {
    pub(crate) fn new(pepper: &str, at_once: usize) -> Self {
        Self {
            pepper: pepper.into(),
            turns: Arc::new(Semaphore::new(at_once)),
            queue_timeout: QUEUE_TIMEOUT,
        }
    }

    /// Under a new salt.
    pub(crate) async fn hash(&self, password: String) -> Result<Hashed, Failure> {
        self.in_turn(move |pepper| {
            let mut salt = vec![0; SALT_LEN];
            rand::fill(&mut salt).map_err(|error| error.to_string())?;
            let hash = argon2id(pepper, &password, &salt, KIB, PASSES)?;
            Ok(Hashed {
                hash: hash.to_vec(),
                salt,
                kib: KIB,
                passes: PASSES,
            })
        })
        .await
    }

    /// `stored` is `None` for a user who does not exist; the same work is done then, so that the time of the answer does
    /// not tell which names are taken.
    pub(crate) async fn verify(&self, password: String, stored: Option<Hashed>) -> Result<bool, Failure> {
        self.in_turn(move |pepper| {
            let exists = stored.is_some();
            let stored = stored.unwrap_or_else(|| Hashed {
                hash: vec![0; HASH_LEN],
                salt: vec![0; SALT_LEN],
                kib: KIB,
                passes: PASSES,
            });
            let presented = argon2id(pepper, &password, &stored.salt, stored.kib, stored.passes)?;
            Ok(constant_time::verify_slices_are_equal(&presented, &stored.hash).is_ok() & exists)
        })
        .await
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&str) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = tokio::time::timeout(self.queue_timeout, Arc::clone(&self.turns).acquire_owned())
            .await
            .map_err(|_| Failure::Busy)?
            .map_err(|closed| Failure::Internal(closed.to_string()))?;
        let pepper = Arc::clone(&self.pepper);
        // The turn goes along: the work goes on when the request that asked for it is gone.
        tokio::task::spawn_blocking(move || {
            let outcome = work(&pepper);
            drop(turn);
            outcome
        })
        .await
        .map_err(|panic| Failure::Internal(panic.to_string()))?
        .map_err(Failure::Internal)
    }
}

fn argon2id(pepper: &str, password: &str, salt: &[u8], kib: i32, passes: i32) -> Result<[u8; HASH_LEN], String> {
    let cost = |value: i32| u32::try_from(value).map_err(|error| error.to_string());
    let hash = || {
        let params = Params::new(cost(kib)?, cost(passes)?, 1, Some(HASH_LEN)).map_err(|error| error.to_string())?;
        let argon2 = Argon2::new_with_secret(pepper.as_bytes(), Algorithm::Argon2id, Version::V0x13, params)
            .map_err(|error| error.to_string())?;
        let mut hash = [0; HASH_LEN];
        argon2
            .hash_password_into(password.as_bytes(), salt, &mut hash)
            .map_err(|error| error.to_string())?;
        Ok(hash)
    };
    hash().map_err(|error: String| format!("argon2id: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_under_the_right_pepper_verifies() {
        let passwords = Passwords::new("a pepper of some length", 2);
        let hash = async || passwords.hash("correct horse".to_owned()).await.expect("hashes");
        let (one, two) = (hash().await, hash().await);
        assert_ne!(one.salt, two.salt);
        assert_ne!(one.hash, two.hash);
        let verify = async |passwords: &Passwords, password: &str, stored: Option<Hashed>| {
            passwords.verify(password.to_owned(), stored).await.expect("is checked")
        };
        assert!(verify(&passwords, "correct horse", Some(one)).await);
        assert!(!verify(&passwords, "Correct horse", Some(two)).await);
        assert!(!verify(&passwords, "correct horse", None).await);
        let other = Passwords::new("another pepper", 2);
        assert!(!verify(&other, "correct horse", Some(hash().await)).await);
    }

    #[tokio::test]
    async fn who_waits_too_long_for_a_turn_is_told_to_come_back() {
        let passwords = Passwords {
            queue_timeout: Duration::from_millis(10),
            ..Passwords::new("a pepper of some length", 1)
        };
        let turn = Arc::clone(&passwords.turns).acquire_owned().await.expect("is open");
        let refused = passwords.verify("correct horse".to_owned(), None).await;
        assert!(matches!(refused, Err(Failure::Busy)));
        drop(turn);
        assert!(
            !passwords
                .verify("correct horse".to_owned(), None)
                .await
                .expect("is checked")
        );
    }
}
