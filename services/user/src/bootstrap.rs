//! What needs the database at start and from then on: loading the signing keys, writing the clients and users files,
//! and looking after what changes with time.

use std::time::Duration;

use chassis::service::{Background, Drain, StartError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clients::{self, ClientEntry};
use crate::config::Config;
use crate::issuer::Issuer;
use crate::keys::{Keeper, KeeperError, SealKey, Turns};
use crate::store;
use crate::store::account::NewAccount;
use crate::store::client::Client;
use crate::users::{self, UserEntry};

/// How long the start waits for the database, so that a wrong secret is a start error when the database is up.
/// A database that is away delays the start by no more than this; readiness then tells.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// How often rows that time has made useless are removed.
const TIDY_EVERY: Duration = Duration::from_secs(60);
const MIN_SECRET_LEN: usize = 16;

pub(crate) struct Bootstrap {
    issuer: Issuer,
    keeper: Keeper,
    clients: Vec<Client>,
    users: Vec<UserEntry>,
}

#[derive(Debug, thiserror::Error)]
enum BootstrapError {
    #[error(transparent)]
    Keys(#[from] KeeperError),
    #[error("the users file cannot be written to the database: {0}")]
    Users(String),
}

/// The keeper of the signing keys, from the settings alone.
pub(crate) fn keeper(config: &Config) -> Result<Keeper, StartError> {
    let turns = Turns {
        rotation: *config.key_rotation,
        lead: *config.key_lead,
        token_lifetime: *config.token_lifetime,
    };
    if !turns.rotation.is_zero() && turns.rotation <= turns.lead {
        return Err(StartError::Config(format!(
            "USER_KEY_ROTATION is {}, which must be more than USER_KEY_LEAD ({}): a key has to be published before it \
             signs",
            config.key_rotation, config.key_lead
        )));
    }
    if config.key_encryption_secret.expose().len() < MIN_SECRET_LEN {
        return Err(too_short("USER_KEY_ENCRYPTION_SECRET"));
    }
    let seal = SealKey::derive(config.key_encryption_secret.expose())
        .map_err(|error| StartError::Unavailable(error.into()))?;
    Ok(Keeper::new(seal, turns))
}

impl Bootstrap {
    /// Reads and checks everything that does not need the database.
    pub(crate) fn new(config: &Config, issuer: Issuer) -> Result<Self, StartError> {
        if config.secret_pepper.expose().len() < MIN_SECRET_LEN {
            return Err(too_short("USER_SECRET_PEPPER"));
        }
        let keeper = keeper(config)?;
        let clients = match &config.clients_file {
            Some(path) => clients::read(path.as_str())?,
            None => Vec::new(),
        };
        let users = match &config.users_file {
            Some(path) => users::read(path.as_str())?,
            None => Vec::new(),
        };
        let clients = clients.into_iter().map(|entry| client(&issuer, entry)).collect();
        Ok(Self {
            issuer,
            keeper,
            clients,
            users,
        })
    }

    /// Tries until it succeeds, then goes on to look after the keys. Returns early: with the outcome of the first part if
    /// the database answers at once, else with the task that goes on trying.
    pub(crate) async fn start(self, drain: Drain) -> Result<Background, StartError> {
        // A task of its own, so that running out of patience does not cut a transaction short.
        let mut task = tokio::spawn(self.run());
        let task = match tokio::time::timeout(PATIENCE, &mut task).await {
            Ok(outcome) => {
                let keeper = outcome
                    .map_err(|panic| StartError::Unavailable(panic.into()))?
                    .map_err(|error| StartError::Config(error.to_string()))?;
                tokio::spawn(std::future::ready(Ok(keeper)))
            }
            Err(_) => task,
        };
        Ok(Background::new("signing-keys", look_after(task, drain)))
    }

    async fn run(self) -> Result<Keepers, BootstrapError> {
        let mut users = Vec::with_capacity(self.users.len());
        for entry in self.users {
            let username = entry.username.clone();
            let user = user(&self.issuer, entry).await;
            users.push(user.map_err(|failure| BootstrapError::Users(format!("{username}: {failure}")))?);
        }
        let keepers = Keepers {
            issuer: self.issuer,
            keeper: self.keeper,
        };
        loop {
            match keepers.first(&self.clients, &users).await {
                Ok(()) => {
                    tracing::info!(clients = self.clients.len(), users = users.len(), "signing keys loaded");
                    return Ok(keepers);
                }
                Err(KeeperError::Database(error)) => {
                    let reason = explain(&error);
                    tracing::warn!(%reason, "the signing keys are not loaded yet; trying again");
                    keepers.issuer.set_waiting_for(reason);
                }
                Err(fatal) => return Err(fatal.into()),
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }
}

/// What goes on after the start.
struct Keepers {
    issuer: Issuer,
    keeper: Keeper,
}

impl Keepers {
    async fn first(&self, clients: &[Client], users: &[NewAccount]) -> Result<(), KeeperError> {
        let ring = self.keeper.load(self.issuer.pool(), &self.issuer.ring()).await?;
        for client in clients {
            store::client::upsert(self.issuer.pool(), client).await?;
        }
        for user in users {
            store::account::upsert(self.issuer.pool(), user).await?;
        }
        // Last: from now on the service is ready, and whoever is in the files can ask for tokens.
        self.issuer.set_ring(ring);
        Ok(())
    }

    /// Follows the keys. A database that is away leaves everything as it is: no replica can add a key then, either.
    async fn follow(&self) {
        let mut tidied = Instant::now();
        loop {
            tokio::time::sleep(self.keeper.every()).await;
            match self.keeper.load(self.issuer.pool(), &self.issuer.ring()).await {
                Ok(ring) => self.issuer.set_ring(ring),
                Err(error) => tracing::warn!(%error, "the signing keys stay as they are"),
            }
            if tidied.elapsed() >= TIDY_EVERY {
                tidied = Instant::now();
                if let Err(error) = self.tidy().await {
                    tracing::warn!(%error, "what has expired is not removed yet");
                }
            }
        }
    }

    async fn tidy(&self) -> sqlx::Result<()> {
        let mut connection = chassis::db::acquire(self.issuer.pool()).await?;
        let sessions = store::session::forget_expired(&mut connection).await?;
        let revocations = store::revocation::forget_expired(&mut connection).await?;
        let keys = store::signing_key::forget_retired(&mut connection).await?;
        tracing::debug!(sessions, revocations, keys, "removed what has expired");
        Ok(())
    }
}

/// A background task may not end before the service does.
async fn look_after(mut task: JoinHandle<Result<Keepers, BootstrapError>>, drain: Drain) -> anyhow::Result<()> {
    let keepers = tokio::select! {
        outcome = &mut task => outcome??,
        () = drain.cancelled() => {
            task.abort();
            return Ok(());
        }
    };
    tokio::select! {
        () = keepers.follow() => {}
        () = drain.cancelled() => {}
    }
    Ok(())
}

fn client(issuer: &Issuer, entry: ClientEntry) -> Client {
    Client {
        secret_hash: issuer.hasher().hash(&entry.client_id, &entry.client_secret).to_vec(),
        client_id: entry.client_id,
        tenant: entry.tenant,
        scopes: entry.scopes,
        grants: entry.grants,
        introspect: entry.introspect,
    }
}

async fn user(issuer: &Issuer, entry: UserEntry) -> Result<NewAccount, crate::failure::Failure> {
    Ok(NewAccount {
        password: issuer.passwords().hash(entry.password).await?,
        username: entry.username,
        email: None,
        tenant: entry.tenant,
        scopes: entry.scopes,
    })
}

fn too_short(variable: &str) -> StartError {
    StartError::Config(format!("{variable}: must have at least {MIN_SECRET_LEN} characters"))
}

fn explain(error: &sqlx::Error) -> String {
    const UNDEFINED_TABLE: &str = "42P01";
    const UNDEFINED_COLUMN: &str = "42703";
    match error.as_database_error().and_then(|error| error.code()) {
        Some(code) if code == UNDEFINED_TABLE || code == UNDEFINED_COLUMN => {
            "the database does not have all tables and columns: run `user migrate`".to_owned()
        }
        _ => error.to_string(),
    }
}
