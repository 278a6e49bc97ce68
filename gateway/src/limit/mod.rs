//! The rate limit: so many requests a minute and subject, counted in Redis, so that all replicas of the edge share it.
//!
//! Each request asks Redis once: a script counts and decides in one atomic step, by Redis' own clock. A second question,
//! or the clock of each replica, would let requests through between the two. When Redis is away, the configuration says
//! whether requests pass or are refused.

mod algorithm;
mod fixed_window;
mod gcra;
mod quota;
mod subject;

use std::sync::LazyLock;
use std::time::Duration;

use chassis::cache::{self, Away, BestEffort, RedisConfig};
use chassis::problem::Problem;
use chassis::readiness::{Dependency, Kind};
use chassis::service::StartError;
use http::StatusCode;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;

pub use algorithm::AlgorithmName;
pub(crate) use quota::Quota;
pub(crate) use subject::Subject;

use crate::config::{Config, WithoutRedis};
use algorithm::{Algorithm, Verdict};

/// Connections of one replica; a question takes well under a millisecond.
const CONNECTIONS: usize = 8;
/// Redis is asked again after a second; see [`BestEffort`].
const RETRY_AFTER: Duration = Duration::from_secs(1);

static DECISIONS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    chassis::telemetry::meter()
        .u64_counter("gateway.rate_limit.decisions")
        .with_description("Requests by what the rate limit decided")
        .with_unit("{request}")
        .build()
});

/// A limit that is on.
pub(crate) struct Limiter {
    redis: BestEffort,
    algorithm: &'static dyn Algorithm,
    limit: u64,
    without_redis: WithoutRedis,
}

impl Limiter {
    /// `None` when the limit is off: Redis is then not needed and not connected to.
    pub(crate) fn new(config: &Config) -> Result<Option<(Self, Dependency)>, StartError> {
        if config.rate_limit == 0 {
            return Ok(None);
        }
        let redis_url = config.redis_url.clone().ok_or_else(|| {
            StartError::Config(format!(
                "GATEWAY_RATE_LIMIT is {}, and the count is kept in Redis: set GATEWAY_REDIS_URL",
                config.rate_limit
            ))
        })?;
        let pool = cache::pool(&RedisConfig {
            redis_url,
            redis_pool_max: CONNECTIONS,
            redis_timeout: config.rate_limit_timeout,
        })?;
        // Without Redis the edge still answers, by its rule for that case.
        let dependency = cache::dependency(&pool, Kind::Degradable);
        let limiter = Self {
            redis: BestEffort::new(pool, *config.rate_limit_timeout),
            algorithm: config.rate_limit_algorithm.algorithm(),
            limit: config.rate_limit,
            without_redis: config.rate_limit_without_redis,
        };
        Ok(Some((limiter, dependency)))
    }

    /// Counts one request of `subject`. `None` when Redis is away and requests pass all the same.
    ///
    /// # Errors
    /// The answer to a request that must not pass.
    pub(crate) async fn admit(&self, subject: &Subject<'_>) -> Result<Option<Quota>, Problem> {
        let key = format!("rowlock:rate-limit:{}:{subject}", self.algorithm.name());
        let script = self.algorithm.script();
        let answer = self
            .redis
            .ask(async |connection| script.run(connection, &key, &[self.limit]).await)
            .await;
        let verdict = match answer {
            Ok(answer) => Verdict::of(answer),
            Err(Away) => return self.without_redis(),
        };
        let quota = Quota {
            policy: self.algorithm.name(),
            limit: self.limit,
            remaining: verdict.remaining,
            reset: verdict.reset,
        };
        if verdict.allowed {
            decided("allowed");
            return Ok(Some(quota));
        }
        decided("refused");
        Err(quota.exceeded(verdict.retry_after))
    }

    fn without_redis(&self) -> Result<Option<Quota>, Problem> {
        match self.without_redis {
            WithoutRedis::Open => {
                decided("allowed-without-redis");
                Ok(None)
            }
            WithoutRedis::Closed => {
                decided("refused-without-redis");
                Err(Problem::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "rate-limit-unavailable",
                    "The rate limit cannot be checked at the moment",
                )
                .detail("Requests cannot be counted, and none is let through uncounted; try again shortly.")
                .retry_after(RETRY_AFTER))
            }
        }
    }
}

fn decided(decision: &'static str) {
    DECISIONS.add(1, &[KeyValue::new("decision", decision)]);
}
