//! The whole stack: every service behind HAProxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use deploy::{Holds, LinkName, PortBase, Stack, Topology};
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::support::eventually;

fn whole(name: &str) -> Topology {
    Topology {
        port_base: PortBase::Free,
        ..Topology::standard(name)
    }
}

/// Clients that read a tenant's configuration through the front, one request after the other.
struct Load {
    stop: Arc<AtomicBool>,
    ok: Arc<AtomicU64>,
    clients: Vec<tokio::task::JoinHandle<Option<String>>>,
}

impl Load {
    async fn begin(stack: &Stack) -> Self {
        let token = token(stack).await;
        let url = format!("http://{}/api/v1/tenants/BEHNGT", stack.front());
        let (stop, ok) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = || {
            let (stop, ok, url, token) = (stop.clone(), ok.clone(), url.clone(), token.clone());
            async move {
                let http = http();
                while !stop.load(Ordering::Relaxed) {
                    match http.get(&url).bearer_auth(&token).send().await {
                        Ok(answer) if answer.status().is_success() => ok.fetch_add(1, Ordering::Relaxed),
                        Ok(answer) => return Some(format!("{}: {:?}", answer.status(), answer.text().await)),
                        Err(error) => return Some(format!("{error:?}")),
                    };
                }
                None
            }
        };
        let clients = (0..4).map(|_| tokio::spawn(client())).collect();
        Self { stop, ok, clients }
    }

    /// Waits until more requests have succeeded.
    async fn go_on(&self) {
        let (ok, wanted) = (self.ok.clone(), self.ok.load(Ordering::Relaxed) + 200);
        let failed = || self.clients.iter().any(tokio::task::JoinHandle::is_finished);
        for _ in 0..3000 {
            if ok.load(Ordering::Relaxed) >= wanted || failed() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no 200 requests in 30 s");
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            assert_eq!(client.await.unwrap(), None, "a request failed");
        }
    }
}

fn http() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(30))
        .build()
        .unwrap()
}

async fn token(stack: &Stack) -> String {
    token_by(stack, "client_credentials").await
}

/// By one of the grants; the load's user has the name and the secret of the load's client.
async fn token_by(stack: &Stack, grant: &str) -> String {
    let client = stack.client("rowlock-load").unwrap();
    let form = [
        ("grant_type", grant),
        ("username", &client.id),
        ("password", &client.secret),
    ];
    let request = http().post(format!("http://{}/oauth2/token", stack.front()));
    let answer = request
        .basic_auth(&client.id, Some(&client.secret))
        .form(&form)
        .send()
        .await
        .unwrap();
    let answer: Value = answer.json().await.unwrap();
    answer["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_come_and_go_without_a_failed_request() {
    let mut stack = Stack::up(whole("test-scale"), &mut |line| println!("{line}"))
        .await
        .unwrap();
    let load = Load::begin(&stack).await;
    for (service, replicas) in [
        ("tour-data", 3),
        ("gateway", 2),
        ("user", 2),
        ("tour-data", 1),
        ("gateway", 1),
        ("user", 1),
        ("tour-data", 2),
    ] {
        load.go_on().await;
        stack.scale(service, replicas).await.unwrap();
        assert_eq!(stack.admin(service).len(), usize::from(replicas));
        assert_eq!(stack.topology().replicas[service], replicas);
    }
    load.go_on().await;
    load.end().await;
    assert!(stack.exited().is_empty());
    assert_eq!(stack.scale("post", 2).await.unwrap_err().exit_code(), 2);
    stack.down().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_arm_has_its_settings_and_the_database_of_the_snapshot() {
    let pooled = Topology {
        pgbouncer: Some(POOLED),
        ..whole("test-arm")
    };
    let mut stack = Stack::up(pooled.clone(), &mut |line| println!("{line}")).await.unwrap();
    tours_through_pgbouncer(&stack).await;
    named_statements_are_refused(&mut stack, pooled).await;

    let mut arm = whole("test-arm");
    arm.settings
        .insert("TOUR_DATA_TOUCH".to_owned(), "update-last".to_owned());
    for service in ["GATEWAY", "TOUR_DATA"] {
        let (name, value) = (format!("{service}_AUTH_CHECK"), "introspection".to_owned());
        arm.settings.insert(name, value);
    }
    arm.replicas.insert("tour-data".to_owned(), 2);
    arm.cpus.insert("tour-data".to_owned(), CORES);
    arm.tenants = 3;
    for (name, value) in [("PLACEMENT", "tenant-shards"), ("SHARDS", "shard_1")] {
        arm.settings.insert(format!("TOUR_DATA_{name}"), value.to_owned());
    }
    let moved = vec!["move-tenant BEHNGT shard_1".to_owned()];
    arm.act.insert("tour-data".to_owned(), moved);
    for link in LinkName::ALL {
        arm.rtt.insert(link, Duration::from_millis(1));
    }
    let touched = stack.differs_from_snapshot("tour_data").await.unwrap();
    assert!(
        touched.iter().any(|table| table == "public.tour: 4 rows instead of 0"),
        "{touched:?}"
    );
    stack.switch(arm, &mut |line| println!("{line}")).await.unwrap();
    assert_eq!((tours(&stack).await, count(&stack, "shard_1.tour").await), (0, 0));
    assert_eq!(stack.differs_from_snapshot("tour_data").await.unwrap(), [] as [&str; 0]);
    let tenants: Vec<&str> = stack
        .load_clients()
        .iter()
        .map(|client| client.tenant.as_str())
        .collect();
    assert_eq!(tenants, ["BEHNGT", "TENANT01", "TENANT02"]);
    refused(&stack).await;
    assert_eq!(stack.admin("tour-data").len(), 2);
    for admin in stack.admin("tour-data") {
        let config: Value = http()
            .get(format!("http://{admin}/config"))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert_eq!(config["config"]["touch"], "update-last", "{config}");
    }
    the_limit_holds(&stack).await;
    let meter = stack.hold_meter().expect("there is a link to PostgreSQL and a hot row");
    assert_eq!(meter.take().await.unwrap().count, 0, "nobody has locked the row yet");
    assert_eq!(create_tour(&stack).await, 201);
    assert_eq!((tours(&stack).await, count(&stack, "shard_1.tour").await), (0, 1));
    let holds = meter.take().await.unwrap();
    // With `update-last` from the reply to the UPDATE over one round trip to the reply to COMMIT.
    assert!(
        holds.count == 1 && holds.unmeasured == 0 && holds.max > Duration::from_micros(500),
        "{holds:?}"
    );
    assert_eq!(meter.take().await.unwrap(), Holds::default());
    let token = token_by(&stack, "password").await;
    assert!(revoked_in_time(&stack, &token).await, "a revoked token still gets in");
    for link in LinkName::ALL {
        assert!(
            stack.link_round_trips(link).await.unwrap() > 0,
            "nothing has passed the link {link}"
        );
    }
    let gone = stack
        .processes()
        .into_iter()
        .find(|process| process.name == "tour-data-2")
        .unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(gone.pid.cast_signed()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    let mut exits = Vec::new();
    eventually("the killed replica is reported", || {
        exits.extend(stack.exited());
        !exits.is_empty()
    });
    assert!(
        exits[0].process.name == "tour-data-2" && exits[0].status.contains('9'),
        "{exits:?}"
    );
    stack.down().await.unwrap();
}

/// Connections that PgBouncer may keep to PostgreSQL.
const POOLED: u16 = 2;

/// Several tours at once, by a service with more connections to PgBouncer than that has to PostgreSQL.
async fn tours_through_pgbouncer(stack: &Stack) {
    let one = || create_tour(stack);
    assert_eq!(tokio::join!(one(), one(), one(), one()), (201, 201, 201, 201));
    assert_eq!(tours(stack).await, 4);
    let mut connection = PgConnection::connect(&stack.postgres("postgres")).await.unwrap();
    let sessions = sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE usename = 'tour_data'");
    let sessions: i64 = sessions.fetch_one(&mut connection).await.unwrap();
    assert!((1..=i64::from(POOLED)).contains(&sessions), "{sessions} sessions");
}

async fn named_statements_are_refused(stack: &mut Stack, mut pooled: Topology) {
    let (name, value) = ("TOUR_DATA_DB_PREPARED".to_owned(), "true".to_owned());
    pooled.settings.insert(name, value);
    let error = stack.switch(pooled, &mut |_| ()).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    for part in ["TOUR_DATA_DB_PREPARED=true", "PgBouncer"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Cores of each replica.
const CORES: f64 = 0.5;

/// A limit that the machine permits is one that the kernel holds the replica to; another is told with the reason.
async fn the_limit_holds(stack: &Stack) {
    if let Some((replica, why)) = stack.unlimited().into_iter().next() {
        println!("skipped: the CPU of {replica} cannot be limited here: {why}");
        return;
    }
    let seen = stack.measured_cpu("tour-data-2").await.unwrap();
    assert!(seen.inside && seen.throttled, "{seen:?}");
    assert!(seen.got > CORES * 0.5 && seen.got < CORES * 1.3, "{seen:?}");
}

/// Whether a token that got in does so no more once it was revoked.
async fn revoked_in_time(stack: &Stack, token: &str) -> bool {
    let client = stack.client("rowlock-load").unwrap();
    let url = |path: &str| format!("http://{}{path}", stack.front());
    let read = async || {
        let request = http().get(url("/api/v1/tenants/BEHNGT")).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(read().await, 200);
    let request = http()
        .post(url("/oauth2/revoke"))
        .basic_auth(&client.id, Some(&client.secret));
    let answer = request.form(&[("token", token)]).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    read().await == 401
}

async fn create_tour(stack: &Stack) -> u16 {
    let payload = std::fs::read(deploy::root().join("loadtests/payloads/create-tour.json")).unwrap();
    let request = http()
        .post(format!("http://{}/api/v1/tours", stack.front()))
        .bearer_auth(token(stack).await);
    let request = request.header("content-type", "application/json").body(payload);
    request.send().await.unwrap().status().as_u16()
}

/// What no stack can be is refused without touching this one.
async fn refused(stack: &Stack) {
    let wrong = |change: fn(&mut Topology)| {
        let mut topology = stack.topology().clone();
        change(&mut topology);
        topology
    };
    for (topology, told) in [
        (wrong(|topology| topology.tenants = 41), "know 40"),
        (
            wrong(|topology| topology.act.values_mut().for_each(|all| all.push("vacate".to_owned()))),
            "`vacate`; it can be told `move-tenant KEY SHARD`",
        ),
    ] {
        let error = Stack::check(&topology).await.unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(told), "{error}");
    }
}

async fn tours(stack: &Stack) -> i64 {
    count(stack, "public.tour").await
}

async fn count(stack: &Stack, table: &str) -> i64 {
    let mut connection = PgConnection::connect(&stack.postgres("tour_data")).await.unwrap();
    let count = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap()
}
