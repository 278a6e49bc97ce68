//! Lua scripts: several commands as one atomic step in one round trip.

use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind, ToRedisArgs};

/// A script that Redis keeps under its SHA-1; the text travels once after each start of the server.
pub struct Script {
    text: &'static str,
    sha1: OnceLock<String>,
}

impl Script {
    /// Nothing is sent yet.
    pub const fn new(text: &'static str) -> Self {
        Self {
            text,
            sha1: OnceLock::new(),
        }
    }

    /// Runs it with `key` as `KEYS[1]` and `arguments` as `ARGV`.
    pub async fn run<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
        key: &str,
        arguments: impl ToRedisArgs + Copy,
    ) -> RedisResult<T> {
        let known = self.call("EVALSHA", self.sha1(), key, arguments);
        match known.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.call("EVAL", self.text, key, arguments)
                    .query_async(connection)
                    .await
            }
            answered => answered,
        }
    }

    fn call(&self, command: &str, script: &str, key: &str, arguments: impl ToRedisArgs) -> Cmd {
        let mut call = redis::cmd(command);
        call.arg(script).arg(1).arg(key).arg(arguments);
        call
    }

    /// The name that Redis gives it; no protection depends on it.
    fn sha1(&self) -> &str {
        self.sha1.get_or_init(|| {
            let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, self.text.as_bytes());
            sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }
}
