//! What tests of several modules share.

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use uuid::Uuid;

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
