//! What the issuer is told from outside.

use chassis::config::{Address, HumanDuration, Secret};
use chassis::db::DbConfig;
use clap::Args;
use serde::Serialize;

/// Configuration of the issuer.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Config {
    /// Issuer identifier: the URL under which clients reach this service, without a trailing slash.
    #[arg(long)]
    pub issuer: Address,
    /// Audience of the access tokens.
    #[arg(long, default_value = "rowlock")]
    pub audience: String,
    /// How long an access token is valid.
    #[arg(long, default_value = "300s")]
    pub token_lifetime: HumanDuration,
    /// How long a refresh token is valid; each use gives a new one.
    #[arg(long, default_value = "168h")]
    pub refresh_lifetime: HumanDuration,
    /// Time between two signing keys; 0s changes them only on `user rotate-key`.
    #[arg(long, default_value = "720h")]
    pub key_rotation: HumanDuration,
    /// How long a new key is published before it signs. Verifiers must ask for the keys again within this time.
    #[arg(long, default_value = "10m")]
    pub key_lead: HumanDuration,
    /// Passwords hashed at once: each takes 19 MiB and a core.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub hashes_at_once: u16,
    /// Scopes of an account that registers itself, separated by spaces.
    #[arg(long, default_value = "posts:read posts:write")]
    pub registration_scopes: String,
    /// Key under which passwords, client secrets and refresh tokens are hashed, at least 16 characters. The same on every
    /// replica.
    #[arg(long)]
    pub secret_pepper: Secret,
    /// Secret from which the encryption key of stored signing keys is derived, at least 16 characters.
    /// The same on every replica.
    #[arg(long)]
    pub key_encryption_secret: Secret,
    /// JSON file of clients to write to the database at start:
    /// [{"client_id","client_secret","tenant","scopes":[…],"grants":[…],"introspect":false}].
    #[arg(long)]
    pub clients_file: Option<Address>,
    /// JSON file of users to write to the database at start: [{"username","password","tenant","scopes":[…]}].
    #[arg(long)]
    pub users_file: Option<Address>,
    /// The database of clients, users and keys.
    #[command(flatten)]
    #[serde(flatten)]
    pub db: DbConfig,
}
