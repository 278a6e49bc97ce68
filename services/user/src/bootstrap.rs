//! What needs the database once, at start: loading or making the signing key, and writing the clients file.

use std::time::Duration;

use chassis::service::{Background, Drain, StartError};
use sqlx::PgPool;
use tokio::task::JoinHandle;

use crate::clients;
use crate::config::Config;
use crate::issuer::Issuer;
use crate::keys::{SealKey, SigningKey};
use crate::store;
use crate::store::client::NewClient;
use crate::store::signing_key::StoredKey;

/// How long the start waits for the database, so that a wrong secret is a start error when the database is up.
/// A database that is away delays the start by no more than this; readiness then tells.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY_EVERY: Duration = Duration::from_millis(500);
const MIN_SECRET_LEN: usize = 16;

pub(crate) struct Bootstrap {
    pool: PgPool,
    issuer: Issuer,
    seal: SealKey,
    clients: Vec<NewClient>,
}

#[derive(Debug, thiserror::Error)]
enum BootstrapError {
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

impl Bootstrap {
    /// Reads and checks everything that does not need the database.
    pub(crate) fn new(config: &Config, pool: PgPool, issuer: Issuer) -> Result<Self, StartError> {
        for (variable, secret) in [
            ("USER_SECRET_PEPPER", &config.secret_pepper),
            ("USER_KEY_ENCRYPTION_SECRET", &config.key_encryption_secret),
        ] {
            if secret.expose().len() < MIN_SECRET_LEN {
                return Err(StartError::Config(format!(
                    "{variable}: must have at least {MIN_SECRET_LEN} characters"
                )));
            }
        }
        let seal = SealKey::derive(config.key_encryption_secret.expose())
            .map_err(|error| StartError::Unavailable(error.into()))?;
        let entries = match &config.clients_file {
            Some(path) => clients::read(path.as_str())?,
            None => Vec::new(),
        };
        let clients = entries
            .into_iter()
            .map(|entry| NewClient {
                secret_hash: issuer.hasher().hash(&entry.client_id, &entry.client_secret).to_vec(),
                client_id: entry.client_id,
                tenant: entry.tenant,
                scopes: entry.scopes,
            })
            .collect();
        Ok(Self {
            pool,
            issuer,
            seal,
            clients,
        })
    }

    /// Tries until it succeeds. Returns early: with the outcome if the database answers at once, else with
    /// the task that goes on trying.
    pub(crate) async fn start(self, drain: Drain) -> Result<Background, StartError> {
        // A task of its own, so that running out of patience does not cut a transaction short.
        let mut task = tokio::spawn(self.run());
        let unfinished = match tokio::time::timeout(PATIENCE, &mut task).await {
            Ok(outcome) => {
                outcome
                    .map_err(|panic| StartError::Unavailable(panic.into()))?
                    .map_err(|error| StartError::Config(error.to_string()))?;
                None
            }
            Err(_) => Some(task),
        };
        Ok(Background::new("signing-key", finish(unfinished, drain)))
    }

    async fn run(self) -> Result<(), BootstrapError> {
        loop {
            match self.attempt().await {
                Ok(key) => {
                    tracing::info!(kid = key.kid(), clients = self.clients.len(), "signing key loaded");
                    self.issuer.set_key(key);
                    return Ok(());
                }
                Err(BootstrapError::Database(error)) => {
                    let reason = explain(&error);
                    tracing::warn!(%reason, "the signing key is not loaded yet; trying again");
                    self.issuer.set_waiting_for(reason);
                }
                Err(fatal) => return Err(fatal),
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    async fn attempt(&self) -> Result<SigningKey, BootstrapError> {
        let key = match store::signing_key::current(&self.pool).await? {
            Some(stored) => self.open(&stored)?,
            None => self.make_key().await?,
        };
        for client in &self.clients {
            store::client::upsert(&self.pool, client).await?;
        }
        Ok(key)
    }

    /// Replicas that start together meet at the lock; the first makes the key, the others find it.
    async fn make_key(&self) -> Result<SigningKey, BootstrapError> {
        let mut transaction = self.pool.begin().await?;
        store::signing_key::lock_creation(&mut transaction).await?;
        if let Some(stored) = store::signing_key::current(&mut *transaction).await? {
            return self.open(&stored);
        }
        let key = tokio::task::spawn_blocking(SigningKey::generate)
            .await
            .map_err(|_| BootstrapError::Crypto("the generator panicked"))?
            .map_err(|_| BootstrapError::Crypto("generating an RSA key failed"))?;
        let pkcs8 = key
            .to_pkcs8()
            .map_err(|_| BootstrapError::Crypto("encoding the key failed"))?;
        let sealed = self
            .seal
            .seal(key.kid(), &pkcs8)
            .map_err(|_| BootstrapError::Crypto("encrypting the key failed"))?;
        let stored = StoredKey {
            kid: key.kid().to_owned(),
            sealed,
        };
        store::signing_key::insert(&mut transaction, &stored).await?;
        transaction.commit().await?;
        tracing::info!(kid = key.kid(), "made a new signing key");
        Ok(key)
    }

    fn open(&self, stored: &StoredKey) -> Result<SigningKey, BootstrapError> {
        let pkcs8 = self
            .seal
            .open(&stored.kid, &stored.sealed)
            .map_err(|_| BootstrapError::WrongSecret {
                kid: stored.kid.clone(),
            })?;
        SigningKey::from_pkcs8(&pkcs8).map_err(|_| BootstrapError::Crypto("the stored key is no RSA key"))
    }
}

/// A background task may not end before the service does.
async fn finish(unfinished: Option<JoinHandle<Result<(), BootstrapError>>>, drain: Drain) -> anyhow::Result<()> {
    if let Some(mut task) = unfinished {
        tokio::select! {
            outcome = &mut task => outcome??,
            () = drain.cancelled() => {
                task.abort();
                return Ok(());
            }
        }
    }
    drain.cancelled().await;
    Ok(())
}

fn explain(error: &sqlx::Error) -> String {
    const UNDEFINED_TABLE: &str = "42P01";
    match error.as_database_error().and_then(|error| error.code()) {
        Some(code) if code == UNDEFINED_TABLE => "the database has no tables yet: run `user migrate`".to_owned(),
        _ => error.to_string(),
    }
}
