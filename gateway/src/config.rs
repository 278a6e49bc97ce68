//! What the edge is told from outside.

use chassis::auth::AuthConfig;
use chassis::config::{Address, HumanDuration};
use clap::Args;
use serde::Serialize;

/// Configuration of the edge.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Config {
    /// JSON file with the replicas of each service: {"services":{"tour-data":[{"http":"127.0.0.1:8080"}]}}.
    /// Read again when it changes; replace it atomically.
    #[arg(long)]
    pub endpoints_file: Address,
    /// How long a service may take until its answer begins, and how long that answer may pause.
    #[arg(long, default_value = "60s")]
    pub upstream_timeout: HumanDuration,
    /// How long connecting to one replica may take before the next one is tried.
    #[arg(long, default_value = "1s")]
    pub connect_timeout: HumanDuration,
    /// Largest request body in bytes.
    #[arg(long, default_value_t = 262_144)]
    pub body_limit: u64,
    /// Who issues the tokens that this edge lets through.
    #[command(flatten)]
    #[serde(flatten)]
    pub auth: AuthConfig,
}
