//! Faults on real servers: each is felt while it lasts, and over afterwards.

use std::time::Duration;

use deploy::{DeployError, Fault, LinkName, Stack, Topology};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection as Broker, ConnectionProperties};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{eventually, is_alive, servers};

/// Longer than anything here takes that is meant to succeed.
const SOON: Duration = Duration::from_secs(60);
/// Long enough to tell an answer from none.
const SILENCE: Duration = Duration::from_millis(300);

fn fault(kind: &str, target: &str) -> Fault {
    Fault {
        kind: kind.to_owned(),
        target: target.to_owned(),
        duration: Duration::from_secs(1),
        added: None,
    }
}

/// Servers with links that add next to nothing.
fn linked(name: &str) -> Topology {
    let mut topology = servers(name);
    for link in [LinkName::Db, LinkName::Redis] {
        topology.rtt.insert(link, Duration::from_micros(300));
    }
    topology
}

async fn select(url: &str) -> Result<PgConnection, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute("SELECT 1").await?;
    Ok(connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_is_felt_and_heals_by_itself() {
    let mut stack = Stack::up(linked("test-faults"), &mut |_| ()).await.unwrap();
    killed_and_restarted(&mut stack).await;
    stopped(&stack).await;
    snapshotted(&stack).await;
    cut_and_slowed(&stack).await;
    without_space(&stack).await;
    refused(&stack).await;

    // A stack that goes down does not wait for what it suffers, and starts nothing again.
    let mut long = fault("kill", "redis");
    long.duration = Duration::from_secs(200);
    stack.fault(&long).await.unwrap();
    let mut held = fault("stop", "postgres");
    held.duration = Duration::from_secs(200);
    stack.fault(&held).await.unwrap();
    assert!(stack.exited().is_empty());
    timeout(SOON, stack.down()).await.expect("it goes down").unwrap();
}

async fn killed_and_restarted(stack: &mut Stack) {
    for kind in ["kill", "restart"] {
        let mut session = select(&stack.postgres("postgres")).await.unwrap();
        let inflicted = stack.fault(&fault(kind, "postgres")).await.unwrap();
        let before = inflicted.hit[0].pid;
        assert!(!is_alive(u64::from(before)), "{kind}");
        assert!(session.execute("SELECT 1").await.is_err(), "{kind}: a session survived");
        assert!(select(&stack.postgres("postgres")).await.is_err(), "{kind}");
        let healed = inflicted.healed().await.unwrap();
        assert_eq!(healed.crashed.is_some(), kind == "kill");
        select(&stack.postgres("postgres")).await.unwrap();
        let now = stack
            .processes()
            .into_iter()
            .find(|process| process.name == "postgres")
            .unwrap();
        assert_ne!(now.pid, before);
        let log = std::fs::read_to_string(&now.log).unwrap();
        let recovered = log.contains("was not properly shut down");
        assert_eq!(recovered, kind == "kill", "only a crash needs a recovery");
        // The log is for the next round.
        std::fs::File::options()
            .write(true)
            .truncate(true)
            .open(&now.log)
            .unwrap();
    }
    assert!(stack.exited().is_empty(), "what a fault ends is no surprise");
}

async fn stopped(stack: &Stack) {
    let mut session = select(&stack.postgres("postgres")).await.unwrap();
    let inflicted = stack.fault(&fault("stop", "postgres")).await.unwrap();
    let pid = inflicted.hit[0].pid;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(stat.contains(") T "), "{stat}");
    // Its session is a process of its own, in a group of its own, and is held as well.
    let query = session.execute("SELECT 1");
    tokio::pin!(query);
    assert!(timeout(SILENCE, &mut query).await.is_err(), "a stopped server answered");
    timeout(SOON, query).await.expect("it goes on").unwrap();
    inflicted.healed().await.unwrap();
    assert!(is_alive(u64::from(pid)));
}

/// The snapshot grows old while it is kept, and ends with the fault.
async fn snapshotted(stack: &Stack) {
    let mut session = select(&stack.postgres("postgres")).await.unwrap();
    let snapshot = "SELECT age(backend_xmin)::int FROM pg_stat_activity WHERE application_name = 'rowlock-deploy' \
        AND state = 'idle in transaction'";
    session
        .execute("CREATE TABLE hot AS SELECT 1 AS id, 0 AS n")
        .await
        .unwrap();
    // It has to be over before the snapshot is, also where a disk takes its time.
    session.execute("SET synchronous_commit = off").await.unwrap();
    let inflicted = stack.fault(&fault("old-snapshot", "postgres")).await.unwrap();
    for _ in 0..20 {
        session.execute("UPDATE hot SET n = n + 1").await.unwrap();
    }
    let age: i32 = sqlx::query_scalar(snapshot).fetch_one(&mut session).await.unwrap();
    assert!(age >= 20, "{age}");
    inflicted.healed().await.unwrap();
    let left: Option<i32> = sqlx::query_scalar(snapshot).fetch_optional(&mut session).await.unwrap();
    assert_eq!(left, None);
    session.execute("DROP TABLE hot").await.unwrap();
}

async fn cut_and_slowed(stack: &Stack) {
    let url = stack.postgres_via_link("postgres");
    let mut session = select(&url).await.unwrap();
    let direct = select(&stack.postgres("postgres")).await.unwrap();
    let inflicted = stack.fault(&fault("cut", "db")).await.unwrap();
    let broken = timeout(SOON, session.execute("SELECT 1"))
        .await
        .expect("it is told")
        .unwrap_err();
    assert!(matches!(broken, sqlx::Error::Io(_)), "{broken}");
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
    let refused = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    direct.close().await.unwrap();
    inflicted.healed().await.unwrap();
    select(&url).await.unwrap();

    let added = Duration::from_millis(80);
    let slow = Fault {
        added: Some(added),
        ..fault("slow", "redis")
    };
    let inflicted = stack.fault(&slow).await.unwrap();
    assert!(stack.measured_rtt(LinkName::Redis).await.unwrap() >= added);
    inflicted.healed().await.unwrap();
    // A distance can be missed by a busy machine, but never by so much that it is the fault's.
    assert!(stack.measured_rtt(LinkName::Redis).await.unwrap() < added);
}

/// The broker's own alarm: it takes a message and confirms it only when there is space again.
async fn without_space(stack: &Stack) {
    let broker = Broker::connect(&stack.amqp(), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = broker.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let queue = QueueDeclareOptions {
        exclusive: true,
        ..QueueDeclareOptions::default()
    };
    let queue = channel
        .queue_declare("".into(), queue, FieldTable::default())
        .await
        .unwrap();
    let inflicted = stack.fault(&fault("fill-disk", "rabbitmq")).await.unwrap();
    let publish = async {
        let options = BasicPublishOptions::default();
        let name = queue.name().clone();
        let sent = channel.basic_publish("".into(), name, options, b"full", BasicProperties::default());
        sent.await.unwrap().await.unwrap()
    };
    tokio::pin!(publish);
    assert!(
        timeout(SILENCE, &mut publish).await.is_err(),
        "a broker without space confirmed"
    );
    assert!(broker.status().blocked(), "it says that it is blocked");
    inflicted.healed().await.unwrap();
    assert!(timeout(SOON, publish).await.expect("it goes on").is_ack());
}

async fn refused(stack: &Stack) {
    let told = |error: DeployError, code: u8, part: &str| {
        assert_eq!(error.exit_code(), code, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let refusal = async |kind: &str, target: &str| stack.fault(&fault(kind, target)).await.unwrap_err();
    told(
        refusal("kil", "postgres").await,
        2,
        "cut, fill-disk, kill, old-snapshot, restart, slow, stop",
    );
    told(refusal("kill", "postgre").await, 2, "postgres, rabbitmq, redis");
    told(refusal("kill", "db").await, 2, "postgres");
    told(refusal("cut", "postgres").await, 2, "db, redis, broker");
    told(refusal("fill-disk", "redis").await, 2, "postgres, rabbitmq");
    told(refusal("cut", "broker").await, 3, "--rtt broker=1ms");
    told(refusal("fill-disk", "postgres").await, 3, "--volume postgres=");
    let inflicted = stack.fault(&fault("kill", "redis")).await.unwrap();
    told(refusal("stop", "redis").await, 3, "not running");
    inflicted.healed().await.unwrap();
    let inflicted = stack.fault(&fault("stop", "redis")).await.unwrap();
    told(refusal("kill", "redis").await, 3, "suffers `stop redis`");
    inflicted.healed().await.unwrap();
}

/// PostgreSQL on a volume of its own that is filled, where mounting is permitted; elsewhere it is said what that takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_without_space_refuses_to_write_and_goes_on_when_there_is_some() {
    let mut topology = servers("test-full");
    topology.volumes.insert("postgres".to_owned(), 256_000_000);
    let stack = match Stack::up(topology, &mut |_| ()).await {
        Ok(stack) => stack,
        Err(error) => {
            assert!(!may_mount(), "{error}");
            assert!(
                error.exit_code() == 3 && error.to_string().contains("as root"),
                "{error}"
            );
            return;
        }
    };
    let url = stack.postgres("postgres");
    let mut session = select(&url).await.unwrap();
    session.execute("CREATE TABLE kept AS SELECT 1 AS n").await.unwrap();
    let inflicted = stack.fault(&fault("fill-disk", "postgres")).await.unwrap();
    let refused = session
        .execute("CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
        .await
        .unwrap_err();
    // 53100 is "disk full". Should the log be what cannot grow, the server ends the session and restarts.
    let code = refused
        .as_database_error()
        .and_then(|error| error.code().map(|code| code.into_owned()));
    assert!(code.is_none_or(|code| code == "53100"), "{refused}");
    inflicted.healed().await.unwrap();
    let mut session = select(&url).await.unwrap();
    let kept: i32 = sqlx::query_scalar("SELECT n FROM kept")
        .fetch_one(&mut session)
        .await
        .unwrap();
    assert_eq!(kept, 1);
    session
        .execute("CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
        .await
        .unwrap();
    drop(session);
    stack.down().await.unwrap();
    eventually("the volume is gone", || !mounts().contains("test-full"));
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mounts").unwrap()
}

/// Root with the capability SYS_ADMIN, bit 21.
fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    u64::from_str_radix(effective.unwrap().trim(), 16).unwrap() & (1 << 21) != 0
}
