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
    /// Key under which client secrets are hashed, at least 16 characters. The same on every replica.
    #[arg(long)]
    pub secret_pepper: Secret,
    /// Secret from which the encryption key of stored signing keys is derived, at least 16 characters.
    /// The same on every replica.
    #[arg(long)]
    pub key_encryption_secret: Secret,
    /// JSON file of clients to write to the database at start:
    /// [{"client_id","client_secret","tenant","scopes":[…]}].
    #[arg(long)]
    pub clients_file: Option<Address>,
    /// The database of clients and keys.
    #[command(flatten)]
    #[serde(flatten)]
    pub db: DbConfig,
}
