//! What the edge is told from outside.

use chassis::auth::AuthConfig;
use chassis::config::{Address, HumanDuration};
use clap::Args;
use serde::Serialize;

use crate::limit::AlgorithmName;

/// Configuration of the edge.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Config {
    /// JSON file with the replicas of each service: {"services":{"tour-data":[{"http":"127.0.0.1:8080"}]}}.
    /// Read again when it changes; replace it atomically.
    #[arg(long)]
    pub endpoints_file: Address,
    /// How long a service may take until its answer begins, and how long that answer may pause. A client that says less
    /// in Rowlock-Deadline-Ms is given less; either way the service is told what is left.
    #[arg(long, default_value = "60s")]
    pub upstream_timeout: HumanDuration,
    /// How long connecting to one replica may take before the next one is tried.
    #[arg(long, default_value = "1s")]
    pub connect_timeout: HumanDuration,
    /// Largest request body in bytes.
    #[arg(long, default_value_t = 262_144)]
    pub body_limit: u64,
    /// Requests a minute and subject: the token's, or the client's address where there is no token yet. 0 sets no limit.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=60_000_000))]
    pub rate_limit: u64,
    /// How requests are counted.
    #[arg(long, value_enum, default_value_t = AlgorithmName::FixedWindow)]
    pub rate_limit_algorithm: AlgorithmName,
    /// What happens to requests while Redis is away: all pass (open), or none does (closed).
    #[arg(long, value_enum, default_value_t = WithoutRedis::Open)]
    pub rate_limit_without_redis: WithoutRedis,
    /// How long Redis may take to count a request before it is taken for away.
    #[arg(long, default_value = "100ms")]
    pub rate_limit_timeout: HumanDuration,
    /// Where requests are counted, redis://user:password@host:port/database; needed with a rate limit, unused without.
    #[arg(long)]
    pub redis_url: Option<Address>,
    /// Proxies in front that append their client to X-Forwarded-For; what stands before their entries is not believed.
    #[arg(long, default_value_t = 0)]
    pub trusted_proxies: usize,
    /// Who issues the tokens that this edge lets through.
    #[command(flatten)]
    #[serde(flatten)]
    pub auth: AuthConfig,
}

/// A rule for the time without Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutRedis {
    /// Availability before the limit.
    Open,
    /// The limit before availability: 503 and Retry-After.
    Closed,
}
