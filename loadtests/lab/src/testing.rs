//! What tests of several modules share.

use std::path::PathBuf;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

use crate::facts::AuditFile;

/// A database of its own for one test, dropped by [`Scratch::drop_database`].
pub(crate) struct Scratch {
    admin: String,
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Scratch {
    /// Made with these statements.
    pub(crate) async fn create(statements: &str) -> Self {
        let admin = std::env::var("ROWLOCK_TEST_POSTGRES")
            .expect("run `cargo rowlock test`, which starts the servers this test needs");
        let name = format!("lab_{}", Uuid::now_v7().simple());
        let mut connection = PgConnection::connect(&format!("{admin}/postgres")).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(create).await.unwrap();
        let url = format!("{admin}/{name}");
        let scratch = Self { admin, name, url };
        scratch.run(statements).await;
        scratch
    }

    /// Runs statements on a session of their own.
    pub(crate) async fn run(&self, statements: &str) {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        let statements = AssertSqlSafe(statements.to_owned());
        sqlx::raw_sql(statements).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    pub(crate) async fn drop_database(self) {
        let mut connection = PgConnection::connect(&format!("{}/postgres", self.admin))
            .await
            .unwrap();
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        connection.execute(AssertSqlSafe(drop)).await.unwrap();
    }
}

/// The SQL files of a folder of the repository, in the order of their names.
pub(crate) fn sql_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(deploy::root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "sql"))
        .collect();
    paths.sort();
    paths
}

/// Statements that make the tables of tour-data.
pub(crate) fn migrations() -> String {
    let files = sql_files("migrations/tour-data").into_iter();
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The invariants that tour-data ships.
pub(crate) fn invariants() -> Vec<AuditFile> {
    let invariants = sql_files("services/tour-data/audit").into_iter().map(|path| AuditFile {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        path,
        says: String::new(),
    });
    invariants.collect()
}
