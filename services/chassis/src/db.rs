//! The PostgreSQL pool and migrations, with the pitfalls of sqlx 0.9 handled in one place.
//!
//! **`min_connections` of a lazy pool** opens nothing before the first connection is replaced, half an hour later; a task
//! of ours opens them.
//!
//! **`TCP_NODELAY`.** sqlx 0.9.0 no longer sets it, so Nagle's algorithm holds a second small segment back until the first
//! is acknowledged, which the other side may delay by 40 ms. A statement does not run into that: sqlx writes Bind,
//! Execute, Close and Sync with one `write`, and the next one only after the answer, which carries the acknowledgement
//! (85 µs a statement here; a test would notice a release that writes in pieces). `COPY … FROM STDIN` does, whatever its
//! size, because data and end are two messages without an answer between them: 44 ms each, measured. The way out for it
//! is a Unix socket (`postgres:///db?host=/run/postgresql`), where the question does not arise.
//!
//! **`begin()` is not cancel-safe.** Dropped half way it leaves the session idle in a transaction that the next borrower
//! inherits. Transactions therefore run in a spawned task that the handler awaits, and the server ends a session that
//! idles in a transaction for 30 s.
//!
//! **A server that restarts ends every session**, and the pool, which does not test what it hands out, goes on handing them
//! out. Work that has not begun yet is safe to begin again: [`read`] does so for reads, and a transaction does so when its
//! BEGIN finds the session ended ([`is_ended`]). Nobody's request fails for a session that was lost while it rested.
//!
//! **A pooler in transaction mode** lends a session for a transaction only. [`Sessions`] can live with that; a pool whose
//! statements have names cannot, and its [`dependency`] says so when it finds itself behind one.

mod outage;
mod session;

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::{FutureExt, future::join_all};
use sqlx::{
    ConnectOptions, Connection, PgConnection, PgPool, Postgres, Row as _,
    migrate::Migrator,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use outage::Outages;

pub use session::{Session, Sessions, Statements};

use crate::{
    config::{Address, HumanDuration},
    deadline::Deadline,
    pools::{self, Pending, PoolState},
    readiness::{Dependency, Kind},
    service::{Chassis, StartError},
};

/// The server ends a session that holds a transaction open for so long without sending a statement.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(30);
const IDLE_IN_TRANSACTION_SETTING: &str = "idle_in_transaction_session_timeout";

/// The statement cache of each connection; sqlx's default, written down because a service with more statement texts than
/// this prepares them over and over again.
const STATEMENT_CACHE: usize = 100;

/// A connection that rested longer than this is tested before it is handed out. Testing each time would cost a round
/// trip per request; not testing at all would hand out sessions that a restarted server or a firewall has dropped.
const TEST_AFTER_IDLE: Duration = Duration::from_secs(15);

/// Waiting for a connection is part of the experiments, so only what no experiment intends is worth a warning.
const SLOW_ACQUIRE: Duration = Duration::from_secs(5);
const SLOW_STATEMENT: Duration = Duration::from_secs(5);

/// Between attempts to fill the pool of a database that is away.
const WARM_UP_AGAIN: Duration = Duration::from_secs(1);

/// How to reach the database, and the shape of the pool.
#[derive(Clone, Debug, clap::Args, serde::Serialize)]
pub struct DbConfig {
    /// Database URL, postgres://user:password@host:port/database.
    #[arg(long)]
    pub db_url: Address,
    /// Most connections the pool opens.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub db_pool_max: u32,
    /// Connections the pool keeps open when nobody uses them.
    #[arg(long, default_value_t = 0)]
    pub db_pool_min_idle: u32,
    /// Age at which a connection is replaced.
    #[arg(long, default_value = "1800s")]
    pub db_max_lifetime: HumanDuration,
    /// How long a request waits for a connection before it fails.
    #[arg(long, default_value = "30s")]
    pub db_acquire_timeout: HumanDuration,
    /// How statements are sent. Not a setting of every service: one that can do without names sets it from its own.
    #[arg(skip)]
    #[serde(skip)]
    pub db_statements: Statements,
}

/// A pool that connects when first used, so that a service starts while its database is away.
///
/// Its state is published as `db.client.connection.count` and `db.client.connection.max`.
pub fn pool(config: &DbConfig, cx: &Chassis) -> Result<PgPool, StartError> {
    let mut options = connect_options(config)?.application_name(&cx.instance_id);
    // A session that is lent is given it with each transaction.
    if config.db_statements == Statements::Named {
        options = options.options([(IDLE_IN_TRANSACTION_SETTING, IDLE_IN_TRANSACTION.as_millis().to_string())]);
    }
    let database = options.get_database().unwrap_or("postgres").to_owned();
    if config.db_pool_min_idle > config.db_pool_max {
        return Err(StartError::Config(format!(
            "db_pool_min_idle is {}, more than the {} connections that db_pool_max allows",
            config.db_pool_min_idle, config.db_pool_max
        )));
    }
    let name = pool_name(&database, &options);
    // Nothing is done after a release: sqlx queues the ROLLBACK of a dropped transaction by itself, and a statement of
    // ours would be another round trip per request.
    let pool = PgPoolOptions::new()
        .max_connections(config.db_pool_max)
        .min_connections(config.db_pool_min_idle)
        .max_lifetime(*config.db_max_lifetime)
        .acquire_timeout(*config.db_acquire_timeout)
        .acquire_slow_threshold(SLOW_ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for > TEST_AFTER_IDLE {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options);
    let (observed, max) = (pool.clone(), u64::from(config.db_pool_max));
    pools::observe("postgresql", &name, move || {
        let idle = observed.num_idle() as u64;
        (!observed.is_closed()).then(|| PoolState {
            used: u64::from(observed.size()).saturating_sub(idle),
            idle,
            max,
        })
    });
    if config.db_pool_min_idle > 0 {
        tokio::spawn(warm_up(pool.clone(), config.db_pool_min_idle));
    }
    Ok(pool)
}

/// The database, and the schema where the sessions see no other: a service may have a pool for each.
fn pool_name(database: &str, options: &PgConnectOptions) -> String {
    let settings = options.get_options().unwrap_or_default();
    let schema = settings
        .split_whitespace()
        .find_map(|setting| setting.strip_prefix("search_path="));
    schema.map_or_else(|| database.to_owned(), |schema| format!("{database}/{schema}"))
}

/// Opens `count` connections as soon as the database is there.
async fn warm_up(pool: PgPool, count: u32) {
    while !pool.is_closed() && pool.size() < count {
        // Held together, or the second would be the first one again.
        let opened = join_all((0..count).map(|_| pool.acquire())).await;
        if let Some(error) = opened.into_iter().find_map(Result::err) {
            tracing::debug!(%error, "the pool is not filled yet");
            tokio::time::sleep(WARM_UP_AGAIN).await;
        }
    }
}

/// A connection from the pool, or [`sqlx::Error::PoolTimedOut`] when none is free in time or the request's deadline has
/// passed: nobody waits for what would be begun then. Whoever waits is counted in
/// `db.client.connection.pending_requests`, and the time it took is recorded as `db.client.connection.wait_time`.
pub async fn acquire(pool: &PgPool) -> Result<PoolConnection<Postgres>, sqlx::Error> {
    // Not left to the bound below, which lets pass what needs no waiting.
    if Deadline::current().is_some_and(|deadline| deadline.is_over()) {
        return Err(sqlx::Error::PoolTimedOut);
    }
    let started = Instant::now();
    let waiting = Pending::new("postgresql");
    let mut ended = Outages::of(pool).ended();
    let acquire = async {
        loop {
            tokio::select! {
                outcome = pool.acquire() => return outcome,
                changed = ended.changed() => changed.expect("the sender is never dropped"),
            }
        }
    };
    // Starting over must not add up to more than the one bound there is, nor go on when nobody waits any more.
    let bound = tokio::time::Instant::now() + pool.options().get_acquire_timeout();
    let bound = Deadline::current().map_or(bound, |deadline| bound.min(deadline.at()));
    let outcome = tokio::time::timeout_at(bound, acquire)
        .await
        .unwrap_or(Err(sqlx::Error::PoolTimedOut));
    drop(waiting);
    pools::record_wait("postgresql", started.elapsed());
    outcome
}

/// Runs a read on a connection of the pool. A session that the server has ended costs it nothing but another one: a read
/// may be repeated.
pub async fn read<T>(
    pool: &PgPool,
    // Not `AsyncFn`: the compiler cannot prove its future to be Send.
    query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error> + Clone,
) -> Result<T, sqlx::Error> {
    let mut spare = spare_sessions(pool);
    loop {
        let mut connection = acquire(pool).await?;
        match query.clone()(&mut connection).await {
            Err(error) if is_ended(&error) && spare > 0 => {
                spare -= 1;
                discard(pool, connection);
            }
            outcome => return outcome,
        }
    }
}

/// How many ended sessions one piece of work may come across: all of the pool's at once, and then one more that the server
/// has just begun and ended.
pub fn spare_sessions(pool: &PgPool) -> u32 {
    pool.options().get_max_connections() + 1
}

/// Takes a session that the server has ended out of the pool.
pub fn discard(pool: &PgPool, connection: PoolConnection<Postgres>) {
    Outages::of(pool).noticed(pool);
    drop(connection.detach());
}

/// Whether an error says that the server has ended the session, or is not there.
pub fn is_ended(error: &sqlx::Error) -> bool {
    /// Ended by an administrator or a crash, or the server is starting up or shutting down.
    const ENDED: [&str; 3] = ["57P01", "57P02", "57P03"];
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| ENDED.contains(&code.as_ref())),
        _ => false,
    }
}

/// Whether the database answers.
///
/// A pool whose connections are all in use is taken as an answer: the check would queue behind the very requests that
/// wait for a row lock, and a replica that is merely busy must not be taken out of the balancer. In an outage the same
/// connections are all in use by those who wait for its end; who has met it says so.
///
/// A database whose sessions do not keep what they were given is as good as away: a pooler stands before it.
pub fn dependency(pool: &PgPool, kind: Kind) -> Dependency {
    let pool = pool.clone();
    let options = pool.connect_options();
    let asked = options
        .get_options()
        .is_some_and(|asked| asked.contains(IDLE_IN_TRANSACTION_SETTING));
    let own = Arc::new(AtomicBool::new(!asked));
    let outages = Outages::of(&pool);
    Dependency::new("postgresql", kind, move || {
        let (pool, own, outages) = (pool.clone(), Arc::clone(&own), Arc::clone(&outages));
        async move {
            if outages.is_on() {
                return Err("the server has ended its sessions and cannot be reached".to_owned());
            }
            let answer = async {
                let mut connection = match pool.try_acquire() {
                    Some(connection) => connection,
                    None if pool.size() >= pool.options().get_max_connections() => return Ok(true),
                    None => pool.acquire().await?,
                };
                connection.ping().await?;
                // Once: whatever stands between is there from the start.
                if !own.load(Ordering::Acquire) {
                    own.store(keeps_its_sessions(&mut connection).await?, Ordering::Release);
                }
                Ok::<_, sqlx::Error>(own.load(Ordering::Acquire))
            };
            match answer.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(SHARED_SESSIONS.to_owned()),
                Err(error) => {
                    outages.noticed(&pool);
                    Err(error.to_string())
                }
            }
        }
        .boxed()
    })
}

/// What is said of a pooler before a pool whose statements have names.
const SHARED_SESSIONS: &str = "a session does not keep what it was given at its start: a pooler stands between, which lends \
    sessions to others too, and statements under names would meet theirs. Connect to PostgreSQL itself, or set \
    DB_PREPARED=false where the service has it";

/// Whether a session is what was asked for, or one that a pooler has made for everybody: that lacks what was given with the
/// connection.
async fn keeps_its_sessions(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    const ASK: &str = "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'";
    // The simple protocol: a statement with a name is just what may not work.
    let row = sqlx::raw_sql(ASK).fetch_one(connection).await?;
    Ok(row.try_get::<String, _>(0)? == IDLE_IN_TRANSACTION.as_millis().to_string())
}

/// One connection outside of any pool, for an action that ends with the process.
pub async fn connect(config: &DbConfig) -> Result<PgConnection, StartError> {
    let options = connect_options(config)?.application_name("action");
    let connect = PgConnection::connect_with(&options);
    tokio::time::timeout(*config.db_acquire_timeout, connect)
        .await
        .context("no answer in time")
        .and_then(|outcome| Ok(outcome?))
        .with_context(|| format!("cannot connect to {:?}", config.db_url))
        .map_err(StartError::Unavailable)
}

/// Applies the migrations over a connection of their own; sqlx takes an advisory lock, so replicas may do it at once. That
/// lock is the session's, so the session has to be.
pub async fn migrate(config: &DbConfig, migrator: &Migrator) -> Result<(), StartError> {
    if config.db_statements == Statements::Unnamed {
        return Err(StartError::Config(
            "migrations hold a lock of their session, which a pooler in transaction mode gives to others: connect to \
             PostgreSQL itself for them, with DB_PREPARED=true"
                .to_owned(),
        ));
    }
    let mut connection = connect(config).await?;
    // `run` is generic over how it gets a connection, and the compiler cannot prove its future to be Send.
    migrator
        .run_direct(None, &mut connection, false)
        .await
        .with_context(|| format!("cannot migrate {:?}", config.db_url))
        .map_err(StartError::Unavailable)
}

fn connect_options(config: &DbConfig) -> Result<PgConnectOptions, StartError> {
    let options = PgConnectOptions::from_str(config.db_url.as_str()).map_err(|error| {
        StartError::Config(format!(
            "db_url is not a database URL ({error}); expected postgres://user:password@host:port/database"
        ))
    })?;
    Ok(options
        .statement_cache_capacity(STATEMENT_CACHE)
        .log_statements(log::LevelFilter::Trace)
        .log_slow_statements(log::LevelFilter::Warn, SLOW_STATEMENT))
}
