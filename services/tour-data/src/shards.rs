//! The places that tenants can live in: the schema `public`, and those that are configured beside it.
//!
//! Schemas of one database, so that a tenant can move in one transaction. Each has a pool of its own, of sessions that see
//! nothing but their schema: no statement needs to know where it runs.

use std::str::FromStr;
use std::sync::Arc;

use chassis::db::{self, DbConfig, Session, Sessions};
use chassis::service::{Chassis, StartError};
use serde::{Serialize, Serializer};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::Config;
use crate::placement::{Shard, Shards};
use crate::store;
use crate::tour::TenantKey;

/// The schema that is always there.
pub(crate) const MAIN: &str = "public";

/// Names of schemas, as they can stand in SQL: `a-z`, `0-9` and `_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardNames(Vec<String>);

impl ShardNames {
    /// In the order of the configuration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromStr for ShardNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        for (at, name) in names.iter().enumerate() {
            let plain = name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
            let begins = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
            if !plain || !begins || name.len() > 63 || name == MAIN || name.starts_with("pg_") {
                return Err(format!(
                    "{name:?} is no name of a shard: it needs 1 to 63 of a-z, 0-9 and _, begins with a letter, and is \
                     neither {MAIN} nor begins with pg_"
                ));
            }
            if names[..at].contains(name) {
                return Err(format!("{name:?} is named twice"));
            }
        }
        Ok(Self(names))
    }
}

impl Serialize for ShardNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.join(","))
    }
}

impl Shards {
    /// A pool for each of those that are configured.
    ///
    /// # Errors
    /// [`StartError::Config`]
    pub fn open(config: &Config, cx: &Chassis) -> Result<Self, StartError> {
        let open = |name: &str, access: DbConfig| {
            Ok::<_, StartError>(Arc::new(Shard {
                name: name.to_owned(),
                db: Sessions::open(&access, cx)?,
                access,
            }))
        };
        let names = config.shards.iter().flat_map(ShardNames::iter);
        Ok(Self {
            main: open(MAIN, config.database())?,
            others: names
                .map(|name| open(name, within(&config.database(), name)?))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Brings every schema to what this binary needs.
pub(crate) async fn migrate(config: &Config, migrations: &Migrator) -> Result<(), StartError> {
    let database = config.database();
    db::migrate(&database, migrations).await?;
    for name in config.shards.iter().flat_map(ShardNames::iter) {
        let mut connection = db::connect(&database).await?;
        // The name is one of `ShardNames`, which are plain.
        let create = AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS {name}"));
        let created = connection.execute(create).await;
        created
            .map_err(|error| StartError::Unavailable(anyhow::anyhow!("cannot create the schema {name}: {error}")))?;
        db::migrate(&within(&database, name)?, migrations).await?;
    }
    Ok(())
}

/// Moves the tenant named by the first word to the shard named by the second.
pub(crate) async fn move_tenant(config: &Config, words: &[String]) -> Result<(), StartError> {
    let [key, target] = words else {
        return Err(StartError::Config("move-tenant takes KEY SHARD".to_owned()));
    };
    let key = TenantKey::parse(key).ok_or_else(|| StartError::Config(format!("{key:?} is no tenant key")))?;
    let known: Vec<&str> = [MAIN]
        .into_iter()
        .chain(config.shards.iter().flat_map(ShardNames::iter))
        .collect();
    if !known.contains(&target.as_str()) {
        return Err(StartError::Config(format!(
            "no shard is called {target:?}; configured: {}",
            known.join(", ")
        )));
    }
    let database = config.database();
    let mut session = Session::own(db::connect(&database).await?, database.db_statements);
    let moved = store::move_tenant(&mut session, &key, target).await;
    moved.map_err(StartError::Unavailable)
}

/// The same database, seen from the schema.
fn within(db: &DbConfig, schema: &str) -> Result<DbConfig, StartError> {
    let url = db.db_url.as_str();
    let join = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{join}options=-c%20search_path%3D{schema}");
    Ok(DbConfig {
        db_url: url.parse().map_err(StartError::Config)?,
        ..db.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_more_than_a_name_are_refused() {
        assert_eq!("a,b_2".parse(), Ok(ShardNames(vec!["a".to_owned(), "b_2".to_owned()])));
        for wrong in ["", "a,", "a,a", "public", "pg_toast", "A", "2b", "a;drop", "a b", "ü"] {
            assert!(wrong.parse::<ShardNames>().is_err(), "{wrong:?} was accepted");
        }
    }
}
