//! Keeps the keys in the database: makes the first, adds the next when its time has come, withdraws the old.
//!
//! A key is published (`lead`) before it signs, so that whoever verifies has heard of it by then, and stays published
//! until the last token it signed has expired. Replicas agree because all of it is decided by rows and the database's
//! clock: each of them sees a new row long before it matters.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection, PgPool};

use super::{Ring, SealKey, SigningKey};
use crate::store;
use crate::store::signing_key::StoredKey;

/// A token that expires at this very moment is still taken by a verifier whose clock is behind, and tokens of the old
/// key may be made a moment after its successor's turn has come.
const GRACE: Duration = Duration::from_secs(30);

/// When keys follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    /// Between two keys; zero never changes them by itself.
    pub(crate) rotation: Duration,
    /// How long a key is published before it signs.
    pub(crate) lead: Duration,
    /// How long tokens are valid.
    pub(crate) token_lifetime: Duration,
}

/// Reads and writes the stored keys.
pub(crate) struct Keeper {
    seal: SealKey,
    turns: Turns,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeeperError {
    #[error(
        "USER_KEY_ENCRYPTION_SECRET does not open signing key {kid} in the database: give every replica the \
         secret with which that key was stored, or delete the row from table signing_key to have a new key \
         made (tokens that are out then become invalid)"
    )]
    WrongSecret { kid: String },
    #[error("the signing key could not be made, encrypted or read: {0}")]
    Crypto(&'static str),
    #[error("the database does not give the signing key: {0}")]
    Database(#[from] sqlx::Error),
}

impl Keeper {
    pub(crate) fn new(seal: SealKey, turns: Turns) -> Self {
        Self { seal, turns }
    }

    /// The keys as stored now, after adding one if none is there or the latest has had its time. Keys that `known` holds
    /// are not opened again, which costs as much as a signature.
    pub(crate) async fn load(&self, pool: &PgPool, known: &Ring) -> Result<Ring, KeeperError> {
        let mut connection = chassis::db::acquire(pool).await?;
        let mut stored = store::signing_key::published(&mut *connection).await?;
        if stored.last().is_none_or(|latest| self.is_over(latest)) {
            self.add(&mut connection, |latest| {
                latest.is_none_or(|latest| self.is_over(latest))
            })
            .await?;
            stored = store::signing_key::published(&mut *connection).await?;
        }
        self.open_all(&stored, known)
    }

    /// Adds a key now, whether or not the latest has had its time.
    pub(crate) async fn rotate(&self, connection: &mut PgConnection) -> Result<(), KeeperError> {
        self.add(connection, |_| true).await
    }

    /// How often [`load`](Self::load) is due so that a new key is known well before it signs.
    pub(crate) fn every(&self) -> Duration {
        (self.turns.lead / 4).clamp(Duration::from_millis(100), Duration::from_secs(5))
    }

    /// Its successor has to be published for the lead before it takes over.
    fn is_over(&self, latest: &StoredKey) -> bool {
        let Turns { rotation, lead, .. } = self.turns;
        !rotation.is_zero() && -latest.signs_in_s + lead.as_secs_f64() >= rotation.as_secs_f64()
    }

    /// Replicas that find at once that a key is needed meet at the lock; the first makes it, the others see it.
    async fn add(
        &self,
        connection: &mut PgConnection,
        needed: impl Fn(Option<&StoredKey>) -> bool,
    ) -> Result<(), KeeperError> {
        let mut transaction = connection.begin().await?;
        store::signing_key::lock_creation(&mut transaction).await?;
        let stored = store::signing_key::published(&mut *transaction).await?;
        if !needed(stored.last()) {
            return Ok(());
        }
        let key = tokio::task::spawn_blocking(SigningKey::generate)
            .await
            .map_err(|_| KeeperError::Crypto("the generator panicked"))?
            .map_err(|_| KeeperError::Crypto("generating an RSA key failed"))?;
        let pkcs8 = key
            .to_pkcs8()
            .map_err(|_| KeeperError::Crypto("encoding the key failed"))?;
        let sealed = self
            .seal
            .seal(key.kid(), &pkcs8)
            .map_err(|_| KeeperError::Crypto("encrypting the key failed"))?;
        // Nothing is signed before the first key is, so nobody needs notice of it.
        let lead = if stored.is_empty() {
            Duration::ZERO
        } else {
            self.turns.lead
        };
        let overlap = self.turns.token_lifetime + GRACE;
        store::signing_key::add(
            &mut transaction,
            key.kid(),
            &sealed,
            lead.as_secs_f64(),
            overlap.as_secs_f64(),
        )
        .await?;
        transaction.commit().await?;
        tracing::info!(kid = key.kid(), signs_in_s = lead.as_secs(), "made a new signing key");
        Ok(())
    }

    fn open_all(&self, stored: &[StoredKey], known: &Ring) -> Result<Ring, KeeperError> {
        let now = Instant::now();
        let mut ring = Ring::default();
        for one in stored {
            let key = match known.get(&one.kid) {
                Some(key) => Arc::clone(key),
                None => Arc::new(self.open(one)?),
            };
            ring.push(key, now, one.signs_in_s, one.retires_in_s);
        }
        Ok(ring)
    }

    fn open(&self, stored: &StoredKey) -> Result<SigningKey, KeeperError> {
        let pkcs8 = self
            .seal
            .open(&stored.kid, &stored.sealed)
            .map_err(|_| KeeperError::WrongSecret {
                kid: stored.kid.clone(),
            })?;
        SigningKey::from_pkcs8(&pkcs8).map_err(|_| KeeperError::Crypto("the stored key is no RSA key"))
    }
}
