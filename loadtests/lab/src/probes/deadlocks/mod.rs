//! Deadlocks: how many PostgreSQL counts, and what it logs of each.
//!
//! The counter says that there were some; the log says who waited for whom with which statement. Neither says why a session
//! held what the next one asked for: that lock was taken by an earlier statement, often by none that anybody wrote, but by the
//! check of a foreign key. So what refers to the relation, and which columns are keys of it, is read from the catalogue.

mod log;
mod tail;

use std::path::PathBuf;

use anyhow::Context;
use async_trait::async_trait;
use deploy::Stack;
use sqlx::PgPool;

use self::tail::Tail;
use super::Probe;
use super::counter::Counter;
use crate::events::{Deadlock, DeadlockSample, Sample};

const COUNT: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

/// A relation by the name that the log gives it, which tells no schema.
const NAMED: &str = "SELECT to_regclass(quote_ident($1))::oid::bigint";

const REFERRING: &str = "\
SELECT format('%s (%s)', conrelid::regclass, conname)
FROM pg_constraint
WHERE contype = 'f' AND confrelid = $1::oid
ORDER BY 1";

/// As PostgreSQL counts a column among the keys of its table: that of an index a foreign key could refer to.
const KEYS: &str = "\
SELECT format('%s (%s)', a.attname, i.indexrelid::regclass)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS key (attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = key.attnum
WHERE i.indrelid = $1::oid AND key.place <= i.indnkeyatts
  AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
ORDER BY 1";

pub(super) struct Deadlocks {
    pool: PgPool,
    database: String,
    log: Tail,
    counter: Counter,
}

impl Deadlocks {
    /// What happened before, in another load, does not count.
    pub(super) async fn new(stack: &Stack, database: &str, pool: PgPool) -> anyhow::Result<Self> {
        let postgres = stack.processes().into_iter().find(|process| process.name == "postgres");
        let log: PathBuf = postgres.context("PostgreSQL is not running")?.log;
        Ok(Self {
            counter: Counter::new(pool.clone(), COUNT).await?,
            pool,
            database: database.to_owned(),
            log: Tail::of(log)?,
        })
    }
}

#[async_trait]
impl Probe for Deadlocks {
    fn name(&self) -> &'static str {
        "deadlocks"
    }

    /// A session adds to the counter when it comes to it, and it may be the last one that was rolled back.
    fn is_told_late(&self) -> bool {
        true
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let count = self.counter.more().await?;
        let mut logged = log::deadlocks(&self.log.more()?, &self.database);
        for deadlock in &mut logged {
            describe(&self.pool, deadlock).await?;
        }
        Ok(Sample::Deadlocks(DeadlockSample { count, logged }))
    }
}

/// Adds what the catalogue knows: names for numbers, and where the locks come from.
async fn describe(pool: &PgPool, deadlock: &mut Deadlock) -> anyhow::Result<()> {
    // A number is one relation; its name may be that of several, in as many schemas.
    let mut victims = None;
    for session in &mut deadlock.sessions {
        if let Some(oid) = log::relation_oid(&session.waits_for).map(i64::from) {
            let names: Option<(String, String)> =
                sqlx::query_as("SELECT relname::text, oid::regclass::text FROM pg_class WHERE oid = $1::oid")
                    .bind(oid)
                    .fetch_optional(pool)
                    .await?;
            if let Some((bare, name)) = names {
                session.waits_for = log::with_relation(&session.waits_for, &name);
                if deadlock.relation.as_ref() == Some(&bare) {
                    victims = victims.or(Some(oid));
                }
            }
        }
    }
    let relation: Option<i64> = match (&deadlock.relation, victims) {
        (Some(name), None) => sqlx::query_scalar(NAMED).bind(name).fetch_one(pool).await?,
        (_, number) => number,
    };
    if let Some(relation) = relation {
        deadlock.referring = sqlx::query_scalar(REFERRING).bind(relation).fetch_all(pool).await?;
        deadlock.keys = sqlx::query_scalar(KEYS).bind(relation).fetch_all(pool).await?;
    }
    Ok(())
}
