//! A database of its own for each test, dropped at its end.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgPool};
use tour_data::TourData;
use uuid::Uuid;

use super::{block_on, server};

const SERVER: &str = "ROWLOCK_TEST_POSTGRES";

pub(crate) struct Database {
    pub(crate) name: String,
    /// The test's own sessions.
    pub(crate) pool: PgPool,
}

impl Database {
    /// Created and migrated.
    pub(crate) async fn create() -> Self {
        let name = format!("tour_data_{}", Uuid::new_v4().simple());
        admin(format!("CREATE DATABASE {name}")).await;
        let options: PgConnectOptions = url(&name).parse().expect("a database URL");
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .connect_lazy_with(options.application_name("test"));
        let database = Self { name, pool };
        let variables =
            super::service::variables(&database.url(), "redis://127.0.0.1:1", "amqp://127.0.0.1:1/%2f", &[]);
        let config = super::service::config(&variables);
        <TourData as chassis::service::Service>::migrate(config)
            .await
            .expect("the migrations apply");
        database
    }

    pub(crate) fn url(&self) -> String {
        url(&self.name)
    }

    /// The server's `host:port`, to be reached over a link.
    pub(crate) fn server_addr() -> String {
        let base = server(SERVER);
        base.rsplit('@')
            .next()
            .expect("split gives something")
            .trim_end_matches('/')
            .to_owned()
    }

    /// The URL with another `host:port`.
    pub(crate) fn url_via(&self, addr: std::net::SocketAddr) -> String {
        self.url().replace(&Self::server_addr(), &addr.to_string())
    }

    /// The first column of the first row.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&self.pool)
            .await
            .expect("the query runs")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        block_on(admin(format!("DROP DATABASE {} WITH (FORCE)", self.name)));
    }
}

/// TLS would hide the protocol from the links.
fn url(database: &str) -> String {
    format!("{}/{database}?sslmode=disable", server(SERVER).trim_end_matches('/'))
}

async fn admin(sql: String) {
    let options: PgConnectOptions = url("postgres").parse().expect("a database URL");
    let mut connection = options.connect().await.expect("the test server answers");
    connection
        .execute(AssertSqlSafe(sql))
        .await
        .expect("the statement runs");
}
