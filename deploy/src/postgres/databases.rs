//! Databases of the services, their owners, and the snapshots they are restored from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{bail, ensure};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::time::{Instant, sleep};

use super::Postgres;
use crate::schema::Change;

const SESSIONS_GONE_WITHIN: Duration = Duration::from_secs(10);

/// Extensions the lab's probes use, in every database: restoring copies them along.
const EXTENSIONS: [&str; 2] = ["pg_stat_statements", "pgrowlocks"];

/// The database of one service.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    /// The database and the role that owns it: lower case letters, digits, underscores.
    pub(crate) name: String,
    /// The owner's password: letters and digits.
    pub(crate) password: String,
    /// Tells its snapshot from those of other topologies, where it is another: lower case letters and digits.
    pub(crate) variant: Option<String>,
}

impl Database {
    /// The database that migrations run against and that copies are made from.
    pub(crate) fn snapshot(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}_snapshot_{variant}", self.name),
            None => format!("{}_snapshot", self.name),
        }
    }

    /// Names and passwords go into statements that take no parameters.
    fn check(&self) -> anyhow::Result<()> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        ensure!(
            !self.name.is_empty() && self.name.chars().all(plain),
            "`{}` cannot name a database: lower case letters, digits and underscores",
            self.name
        );
        ensure!(
            self.variant.iter().all(|variant| variant.chars().all(plain)),
            "{:?} cannot name a snapshot: lower case letters, digits and underscores",
            self.variant
        );
        ensure!(
            self.password.chars().all(|c| c.is_ascii_alphanumeric()),
            "the password of {} has other characters than letters and digits",
            self.name
        );
        Ok(())
    }
}

pub(super) async fn prepare_snapshot(server: &Postgres, database: &Database) -> anyhow::Result<()> {
    database.check()?;
    let Database { name, password, .. } = database;
    let snapshot = database.snapshot();
    let mut connection = server.connect("postgres").await?;
    let has_role: bool = sqlx::query_scalar("SELECT count(*) > 0 FROM pg_roles WHERE rolname = $1")
        .bind(name)
        .fetch_one(&mut connection)
        .await?;
    let verb = if has_role { "ALTER" } else { "CREATE" };
    run(
        &mut connection,
        format!("{verb} ROLE {name} LOGIN PASSWORD '{password}'"),
    )
    .await?;
    if !exists(server, &snapshot).await? {
        run(&mut connection, format!("CREATE DATABASE {snapshot} OWNER {name}")).await?;
    }
    connection.close().await?;
    let mut connection = server.connect(&snapshot).await?;
    for extension in EXTENSIONS {
        run(&mut connection, format!("CREATE EXTENSION IF NOT EXISTS {extension}")).await?;
    }
    connection.close().await?;
    Ok(())
}

pub(super) async fn exists(server: &Postgres, name: &str) -> anyhow::Result<bool> {
    let mut connection = server.connect("postgres").await?;
    let exists = sqlx::query_scalar("SELECT count(*) > 0 FROM pg_database WHERE datname = $1")
        .bind(name)
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(exists)
}

pub(super) async fn drop_snapshot(server: &Postgres, database: &Database) -> anyhow::Result<()> {
    database.check()?;
    let mut connection = server.connect("postgres").await?;
    run(
        &mut connection,
        format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database.snapshot()),
    )
    .await?;
    connection.close().await?;
    Ok(())
}

pub(super) async fn restore(server: &Postgres, database: &Database) -> anyhow::Result<()> {
    database.check()?;
    let name = &database.name;
    let snapshot = database.snapshot();
    let mut connection = server.connect("postgres").await?;
    // A database with sessions cannot be copied.
    end_sessions(&mut connection, &snapshot).await?;
    run(&mut connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await?;
    // WAL_LOG took 1.2 s where FILE_COPY took 1.4 (medians of 12, a busy machine with 2 cores): the latter writes two
    // checkpoints of its own and flushes every file.
    let copy = format!("CREATE DATABASE {name} OWNER {name} TEMPLATE {snapshot} STRATEGY WAL_LOG");
    // Its statistics start at zero: they belong to the database's OID, which is new.
    run(&mut connection, copy).await?;
    connection.close().await?;
    compare(server, &snapshot, name).await
}

pub(super) async fn change(server: &Postgres, database: &Database, change: &Change) -> anyhow::Result<()> {
    // As its owner, like the migrations: what is made belongs to the service.
    let Database { name, password, .. } = database;
    let mut connection = PgConnection::connect(&server.url_as(name, password, name, None)).await?;
    run(&mut connection, change.sql.clone()).await?;
    connection.close().await?;
    Ok(())
}

pub(super) async fn checkpoint(server: &Postgres) -> anyhow::Result<()> {
    let mut connection = server.connect("postgres").await?;
    run(&mut connection, "CHECKPOINT".to_owned()).await?;
    connection.close().await?;
    Ok(())
}

async fn end_sessions(connection: &mut PgConnection, database: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + SESSIONS_GONE_WITHIN;
    loop {
        let left: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM (
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = $1 AND pid <> pg_backend_pid()
             ) AS ended",
        )
        .bind(database)
        .fetch_one(&mut *connection)
        .await?;
        if left == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{left} sessions on {database} do not end");
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Makes sure that a copy is what it was made from.
pub(super) async fn compare(server: &Postgres, snapshot: &str, copy: &str) -> anyhow::Result<()> {
    let differing = differs(server, snapshot, copy).await?;
    ensure!(
        differing.is_empty(),
        "it differs from its snapshot: {}",
        differing.join(", ")
    );
    Ok(())
}

/// The tables of `copy` that have other rows than those of `snapshot`, in words.
pub(super) async fn differs(server: &Postgres, snapshot: &str, copy: &str) -> anyhow::Result<Vec<String>> {
    let (expected, found) = tokio::try_join!(tables(server, snapshot), tables(server, copy))?;
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differing = names
        .into_iter()
        .filter_map(|table| match (expected.get(table), found.get(table)) {
            (expected, found) if expected == found => None,
            (Some((rows, _)), Some((now, _))) if rows == now => {
                Some(format!("{table}: its {rows} rows have other contents"))
            }
            (Some((rows, _)), Some((now, _))) => Some(format!("{table}: {now} rows instead of {rows}")),
            (Some(_), None) => Some(format!("{table} is missing")),
            (None, _) => Some(format!("{table} is not in the snapshot")),
        });
    Ok(differing.collect())
}

/// Every table of the services with the number of its rows and a digest of their contents, whatever their order. A snapshot
/// holds what migrations insert and no more, so reading all of it is cheap.
async fn tables(server: &Postgres, database: &str) -> anyhow::Result<BTreeMap<String, (i64, String)>> {
    let mut connection = server.connect(database).await?;
    let rows: Vec<(String, i64, String)> = sqlx::query_as(
        "SELECT name, (xpath('/row/n/text()', seen))[1]::text::bigint,
                coalesce((xpath('/row/d/text()', seen))[1]::text, '')
         FROM (
             SELECT format('%I.%I', schemaname, tablename) AS name, query_to_xml(format(
                 'SELECT count(*) AS n, md5(string_agg(md5(t::text), '''' ORDER BY md5(t::text))) AS d FROM %I.%I AS t',
                 schemaname, tablename), false, true, '') AS seen
             FROM pg_tables
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
         ) AS every",
    )
    .fetch_all(&mut connection)
    .await?;
    connection.close().await?;
    Ok(rows
        .into_iter()
        .map(|(table, rows, digest)| (table, (rows, digest)))
        .collect())
}

/// Utility statements take no parameters; what is put into them is checked by [`Database::check`], or is a file of the
/// checkout.
async fn run(connection: &mut PgConnection, statement: String) -> anyhow::Result<()> {
    connection.execute(AssertSqlSafe(statement)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_that_need_quoting_are_refused() {
        for (name, password) in [("a;b", "x"), ("", "x"), ("Tours", "x"), ("tours", "it's")] {
            let database = Database {
                name: name.to_owned(),
                password: password.to_owned(),
                variant: None,
            };
            assert!(database.check().is_err(), "{name:?} {password:?}");
        }
    }
}
