//! Configuration: one alternative of each axis, and how to reach what the service stands on.

use chassis::auth::AuthConfig;
use chassis::broker::BrokerConfig;
use chassis::cache::RedisConfig;
use chassis::config::HumanDuration;
use chassis::db::{DbConfig, Statements};

use crate::announce::Announce;
use crate::axis::Chosen;
use crate::inserts::Inserts;
use crate::placement::Placement;
use crate::plan::Isolation;
use crate::shards::ShardNames;
use crate::touch::Touch;

/// Queue of the messages that tours were created, unless it is configured.
pub(crate) const QUEUE: &str = "tour.created";
/// Queue of touches, unless it is configured.
pub(crate) const TOUCH_QUEUE: &str = "tour.touched";

/// Of tour-data; variables start with `TOUR_DATA_`.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
pub struct Config {
    /// How the rows of a tour get in.
    #[arg(long, default_value = "per-row")]
    pub inserts: Chosen<dyn Inserts>,
    /// How the tenant row is written and read.
    #[arg(long, default_value = "update-first")]
    pub touch: Chosen<dyn Touch>,
    /// How the message that a tour was created gets out.
    #[arg(long, default_value = "after-commit")]
    pub announce: Chosen<dyn Announce>,
    /// Which database a tenant lives in.
    #[arg(long, default_value = "single")]
    pub placement: Chosen<dyn Placement>,
    /// Isolation level of the transaction.
    #[arg(long, value_enum, default_value_t = Isolation::ReadCommitted)]
    pub isolation: Isolation,
    /// Whether this replica consumes the queue.
    #[arg(long, value_enum, default_value_t = Switch::On)]
    pub consumer: Switch,
    /// How long the consumer takes over each message: stands for slow work behind the queue.
    #[arg(long, default_value = "0s")]
    pub consumer_delay: HumanDuration,
    /// Exchange that tours are announced on.
    #[arg(long, default_value = "tour.events", value_parser = name)]
    pub exchange: &'static str,
    /// Queue that is bound to it and consumed.
    #[arg(long, default_value = QUEUE, value_parser = name)]
    pub queue: &'static str,
    /// Queue that touches go through, for the touch that uses one.
    #[arg(long, default_value = TOUCH_QUEUE, value_parser = name)]
    pub touch_queue: &'static str,
    /// Schemas that tenants can live in beside `public`, separated by commas; for a placement that uses them.
    #[arg(long)]
    pub shards: Option<ShardNames>,
    /// How long a tour that was read is kept in Redis.
    #[arg(long, default_value = "60s")]
    pub tour_cache_ttl: HumanDuration,
    /// Whether statements are prepared under names, which takes sessions of the service's own; false behind a pooler in
    /// transaction mode.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    pub db_prepared: bool,
    /// PostgreSQL.
    #[command(flatten)]
    #[serde(flatten)]
    pub db: DbConfig,
    /// Redis.
    #[command(flatten)]
    #[serde(flatten)]
    pub redis: RedisConfig,
    /// RabbitMQ.
    #[command(flatten)]
    #[serde(flatten)]
    pub broker: BrokerConfig,
    /// The token check.
    #[command(flatten)]
    #[serde(flatten)]
    pub auth: AuthConfig,
}

impl Config {
    /// How to reach PostgreSQL, and how statements are sent there.
    pub(crate) fn database(&self) -> DbConfig {
        let db_statements = if self.db_prepared {
            Statements::Named
        } else {
            Statements::Unnamed
        };
        DbConfig {
            db_statements,
            ..self.db.clone()
        }
    }
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// A name at the broker. It is kept for the life of the process, which is what configuration lives for; the broker's
/// interface takes names that do.
fn name(text: &str) -> Result<&'static str, String> {
    if !(1..=255).contains(&text.len()) || text.chars().any(char::is_control) {
        return Err("a name at the broker has 1 to 255 bytes and no control characters".to_owned());
    }
    Ok(text.to_owned().leak())
}
