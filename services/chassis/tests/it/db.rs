//! The PostgreSQL pool against a real server, and the service around it.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode};
use chassis::{
    config::{self, Common},
    db::{self, DbConfig},
    readiness::Kind,
    service::{self, App, Chassis, Service, StartError},
};
use sqlx::{PgPool, migrate::Migrator};
use tokio::net::TcpListener;

use crate::servers::{self, Database};

fn config(url: &str, more: &[(&str, &str)]) -> DbConfig {
    let pairs: Vec<_> = [("IT_DB_URL", url)].into_iter().chain(more.iter().copied()).collect();
    config::parse_from("it", &pairs).expect("a good configuration")
}

/// A service that has a database and nothing else; its router hands out the pool to the test.
struct Stored;

#[derive(Clone, clap::Args, serde::Serialize)]
struct StoredConfig {
    #[command(flatten)]
    #[serde(flatten)]
    db: DbConfig,
    /// Where the test waits for the pool.
    #[arg(long)]
    mailbox: String,
}

type Mailbox = std::sync::Mutex<std::collections::HashMap<String, PgPool>>;
static POOLS: std::sync::LazyLock<Mailbox> = std::sync::LazyLock::new(Mailbox::default);

impl Service for Stored {
    const NAME: &'static str = "stored";
    type Config = StoredConfig;

    async fn build(config: StoredConfig, cx: Chassis) -> Result<App, StartError> {
        let pool = db::pool(&config.db, &cx)?;
        POOLS.lock().expect("not poisoned").insert(config.mailbox, pool.clone());
        let dependencies = vec![db::dependency(&pool, Kind::Required)];
        Ok(App {
            router: Router::new(),
            dependencies,
            background: Vec::new(),
        })
    }
}

async fn start(url: &str) -> (service::Running, PgPool) {
    let mailbox = servers::unique("pool");
    let pairs = [
        ("STORED_DB_URL", url),
        ("STORED_DB_POOL_MAX", "2"),
        ("STORED_MAILBOX", mailbox),
    ];
    let config = config::parse_from("stored", &pairs).expect("a good configuration");
    let running = service::start::<Stored>(Common::default(), config)
        .await
        .expect("started");
    let pool = POOLS.lock().expect("not poisoned").remove(mailbox).expect("built");
    (running, pool)
}

async fn get(running: &service::Running, path: &str) -> (StatusCode, String) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let response = client
        .get(format!("http://{}{path}", running.admin_addr))
        .send()
        .await
        .expect("an answer");
    (response.status(), response.text().await.expect("a body"))
}

#[tokio::test]
async fn a_service_starts_without_its_database_and_says_that_it_alone_is_not_ready() {
    let nobody = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port")
        .local_addr()
        .expect("bound");
    let (running, _pool) = start(&format!("postgres://rowlock@{nobody}/nothing")).await;
    let (status, body) = get(&running, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("postgresql"), "{body}");

    // What happens to one database is no news of another, which is there.
    let database = Database::create().await;
    let (other, pool) = start(&database.url).await;
    let (status, body) = get(&other, "/readyz").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    other.shutdown().await.expect("drained");
    pool.close().await;
    database.drop().await;
    running.shutdown().await.expect("drained");
}

#[tokio::test]
async fn a_session_of_its_own_is_not_waited_for_without_end() {
    // Whoever connects is let in by the kernel and answered by nobody.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("postgres://rowlock@{}/nothing", silent.local_addr().expect("bound"));
    let config = config(&url, &[("IT_DB_ACQUIRE_TIMEOUT", "200ms")]);
    let sessions = db::Sessions::open(&config, &servers::chassis()).expect("a good URL");
    let error = sessions.connect().await.expect_err("nobody answers");
    assert!(error.to_string().contains("within 200ms"), "{error}");
}

#[tokio::test]
async fn a_pool_whose_connections_are_all_in_use_is_ready_and_shows_in_the_metrics() {
    let database = Database::create().await;
    let (running, pool) = start(&database.url).await;
    let held = [
        db::acquire(&pool).await.expect("a connection"),
        db::acquire(&pool).await.expect("a connection"),
    ];
    let (status, body) = get(&running, "/readyz").await;
    assert_eq!(status, StatusCode::OK, "{body}");

    let metric = async |name: &str, state: &str| {
        let (_, metrics) = get(&running, "/metrics").await;
        let line = metrics.lines().find(|line| {
            line.starts_with(name) && line.contains(&database.name) && (state.is_empty() || line.contains(state))
        });
        let line = line.unwrap_or_else(|| panic!("{name} {state} is missing from:\n{metrics}"));
        line.rsplit(' ')
            .next()
            .and_then(|value| value.parse::<f64>().ok())
            .expect("a number")
    };
    assert_eq!(metric("db_client_connection_count", "\"used\"").await, 2.0);
    assert_eq!(metric("db_client_connection_count", "\"idle\"").await, 0.0);
    assert_eq!(metric("db_client_connection_max", "").await, 2.0);
    let (_, metrics) = get(&running, "/metrics").await;
    assert!(metrics.contains("db_client_connection_wait_time"), "{metrics}");

    drop(held);
    let deadline = Instant::now() + Duration::from_secs(30);
    while metric("db_client_connection_count", "\"idle\"").await != 2.0 {
        assert!(Instant::now() < deadline, "the connections never came back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(metric("db_client_connection_count", "\"used\"").await, 0.0);
    running.shutdown().await.expect("drained");
    pool.close().await;
    database.drop().await;
}

#[tokio::test]
async fn sessions_carry_the_instance_and_do_not_idle_in_a_transaction_for_ever() {
    let database = Database::create().await;
    let cx = servers::chassis();
    let pool = db::pool(&config(&database.url, &[]), &cx).expect("a pool");
    let setting = async |name: &str| {
        sqlx::query_scalar::<_, String>("SELECT current_setting($1)")
            .bind(name)
            .fetch_one(&pool)
            .await
            .expect("a setting")
    };
    assert_eq!(setting("application_name").await, cx.instance_id);
    assert_eq!(setting("idle_in_transaction_session_timeout").await, "30s");
    pool.close().await;
    database.drop().await;
}

/// sqlx 0.9.0 leaves Nagle's algorithm on. Were a statement sent in pieces, each execution would wait for the server's
/// delayed acknowledgement, which takes 40 ms; half of the statements taking that long is no busy machine.
#[tokio::test]
async fn statements_over_tcp_do_not_wait_for_delayed_acknowledgements() {
    let database = Database::create().await;
    let pool = db::pool(&config(&database.url, &[("IT_DB_POOL_MAX", "1")]), &servers::chassis()).expect("a pool");
    sqlx::query("CREATE TABLE t (id bigint, note text)")
        .execute(&pool)
        .await
        .expect("created");
    let mut statements = Vec::new();
    let mut commits = Vec::new();
    for transaction in 0..20_i64 {
        let mut tx = pool.begin().await.expect("begun");
        for statement in 0..10_i64 {
            let started = Instant::now();
            sqlx::query("INSERT INTO t (id, note) VALUES ($1, $2)")
                .bind(transaction * 10 + statement)
                .bind("a note of ordinary length")
                .execute(&mut *tx)
                .await
                .expect("inserted");
            statements.push(started.elapsed());
        }
        let started = Instant::now();
        tx.commit().await.expect("committed");
        commits.push(started.elapsed());
    }
    for (what, mut times) in [("statement", statements), ("commit", commits)] {
        times.sort();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{what}: median {median:?}, longest {longest:?}");
        assert!(
            median < Duration::from_millis(30),
            "half of the {what}s took {median:?} or more"
        );
    }
    pool.close().await;
    database.drop().await;
}

#[tokio::test]
async fn the_least_number_of_connections_is_opened_before_anybody_asks() {
    let database = Database::create().await;
    let sizes = [("IT_DB_POOL_MAX", "4"), ("IT_DB_POOL_MIN_IDLE", "3")];
    let pool = db::pool(&config(&database.url, &sizes), &servers::chassis()).expect("a pool");
    let deadline = Instant::now() + Duration::from_secs(30);
    while (pool.size(), pool.num_idle()) != (3, 3) {
        assert!(
            Instant::now() < deadline,
            "{} connections, {} idle",
            pool.size(),
            pool.num_idle()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    pool.close().await;
    let too_many = [("IT_DB_POOL_MAX", "2"), ("IT_DB_POOL_MIN_IDLE", "3")];
    let error = db::pool(&config(&database.url, &too_many), &servers::chassis()).err();
    assert!(matches!(error, Some(StartError::Config(text)) if text.contains("db_pool_min_idle")));
    database.drop().await;
}

fn migrations(text: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(servers::unique("rowlock-migrations"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("0001_first.sql"), text).expect("a migration");
    folder
}

#[tokio::test]
async fn replicas_that_migrate_at_once_do_it_once() {
    let database = Database::create().await;
    let folder = migrations("SELECT pg_sleep(0.2); CREATE TABLE first (id int);");
    let migrator = Migrator::new(folder.as_path()).await.expect("migrations");
    let config = config(&database.url, &[]);
    let (one, two) = tokio::join!(db::migrate(&config, &migrator), db::migrate(&config, &migrator));
    one.expect("migrated");
    two.expect("found migrated");
    std::fs::remove_dir_all(folder).expect("removed");
    database.drop().await;
}

#[tokio::test]
async fn a_migration_that_cannot_run_says_where_and_hides_the_password() {
    let database = Database::create().await;
    let folder = migrations("CREATE TABEL typo (id int);");
    let migrator = Migrator::new(folder.as_path()).await.expect("migrations");
    let error = db::migrate(&config(&database.url, &[]), &migrator)
        .await
        .expect_err("refused");
    let text = error.to_string();
    assert!(matches!(error, StartError::Unavailable(_)));
    assert!(text.contains(&database.name) && text.contains("syntax error"), "{text}");
    let password = database
        .url
        .split([':', '@'])
        .nth(2)
        .expect("the test server has a password");
    assert!(!text.contains(password), "{text}");
    std::fs::remove_dir_all(folder).expect("removed");
    database.drop().await;
}

#[test]
fn a_database_url_that_is_none_is_a_configuration_error() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let error = runtime.block_on(async { db::pool(&config("mysql//nothing", &[]), &servers::chassis()).err() });
    assert!(matches!(error, Some(StartError::Config(text)) if text.contains("db_url")));
}
