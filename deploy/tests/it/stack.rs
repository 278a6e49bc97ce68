//! Up, another arm, down.

use std::net::TcpListener;
use std::time::Duration;

use deploy::control::Remote;
use deploy::{LinkName, PortBase, Stack, Topology};
use sqlx::{Connection as _, PgConnection};

use crate::support::{is_alive, marked, mode, recorded, servers, state, state_json};

async fn ask(url: &str, question: &str) -> String {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(sqlx::AssertSqlSafe(question))
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_servers_come_up_and_nothing_is_left_of_them_after_down() {
    let name = "test-up";
    let mut lines = Vec::new();
    let mut stack = Stack::up(servers(name), &mut |line| lines.push(line.to_owned()))
        .await
        .unwrap();
    assert!(lines.iter().any(|line| line.starts_with("RabbitMQ is up")), "{lines:?}");
    assert_eq!(
        ask(&stack.postgres("postgres"), "SHOW port")
            .await
            .parse::<u16>()
            .unwrap(),
        port_of(&stack, "postgres")
    );
    let names: Vec<String> = stack.processes().into_iter().map(|process| process.name).collect();
    for part in ["postgres", "redis", "rabbitmq", "guardian"] {
        assert!(names.iter().any(|name| name == part), "{part} in {names:?}");
    }
    assert!(stack.exited().is_empty());
    assert_eq!(mode(&state(name)), 0o700);
    assert_eq!(mode(&state(name).join("state.json")), 0o600);

    let remote = Remote::find(name).expect("other terminals find it");
    let status = remote.status().await.unwrap();
    assert!(status.ready && status.supervisor == std::process::id());

    let second = Stack::up(servers(name), &mut |_| ()).await.unwrap_err();
    assert!(
        second.to_string().contains(&format!("pid {}", std::process::id())),
        "{second}"
    );

    let run = state_json(name);
    stack.down().await.unwrap();
    assert_eq!(marked(run["run"].as_str().unwrap()), [] as [u32; 0]);
    assert!(!recorded(&run).into_iter().any(is_alive));
    assert!(Remote::find(name).is_none());
}

#[tokio::test]
async fn another_arm_has_its_preset_and_its_distance_and_the_broker_stays() {
    let name = "test-switch";
    let mut stack = Stack::up(servers(name), &mut |_| ()).await.unwrap();
    let broker = pid_of(&stack, "rabbitmq");
    let before = ask(&stack.postgres("postgres"), "SHOW shared_buffers").await;

    let mut arm = servers(name);
    arm.postgres_preset = "tuned".to_owned();
    arm.rtt.insert(LinkName::Db, Duration::from_millis(5));
    stack.switch(arm, &mut |_| ()).await.unwrap();
    assert_eq!(pid_of(&stack, "rabbitmq"), broker);
    let after = ask(&stack.postgres("postgres"), "SHOW shared_buffers").await;
    assert_ne!(before, after);
    assert_ne!(stack.postgres("postgres"), stack.postgres_via_link("postgres"));

    let passed = stack.link_round_trips(LinkName::Db).await.unwrap();
    let mut connection = PgConnection::connect(&stack.postgres_via_link("postgres"))
        .await
        .unwrap();
    let connected = stack.link_round_trips(LinkName::Db).await.unwrap();
    assert!(connected > passed);
    for _ in 0..10 {
        sqlx::raw_sql("SELECT 1").execute(&mut connection).await.unwrap();
    }
    assert_eq!(stack.link_round_trips(LinkName::Db).await.unwrap(), connected + 10);
    // A distance can be missed by a busy machine, but it cannot be undercut.
    assert!(stack.measured_rtt(LinkName::Db).await.unwrap() > Duration::from_millis(4));

    stack.switch(servers(name), &mut |_| ()).await.unwrap();
    assert_eq!(ask(&stack.postgres("postgres"), "SHOW shared_buffers").await, before);
    assert_eq!(stack.postgres("postgres"), stack.postgres_via_link("postgres"));
    stack.down().await.unwrap();
}

#[tokio::test]
async fn a_taken_port_is_named_with_its_purpose_before_anything_is_started() {
    let (held, base) = (20000..30000)
        .step_by(97)
        .find_map(|base: u16| Some((TcpListener::bind(("127.0.0.1", base + 3)).ok()?, base)))
        .unwrap();
    let topology = Topology {
        port_base: PortBase::Fixed(base),
        ..servers("test-port")
    };
    let error = Stack::up(topology, &mut |_| ()).await.unwrap_err();
    let port = held.local_addr().unwrap().port().to_string();
    let text = error.to_string();
    assert!(
        text.contains(&port) && text.contains("Redis") && text.contains("--port-base"),
        "{text}"
    );
    assert_eq!(error.exit_code(), 3);
    assert!(Remote::find("test-port").is_none());
}

#[tokio::test]
async fn a_setting_no_service_takes_is_refused() {
    let mut topology = servers("test-setting");
    topology
        .settings
        .insert("TOUR_DATA_TOUCH".to_owned(), "none".to_owned());
    let error = Stack::up(topology, &mut |_| ()).await.unwrap_err();
    assert!(
        error.exit_code() == 2 && error.to_string().contains("TOUR_DATA_TOUCH"),
        "{error}"
    );
}

fn pid_of(stack: &Stack, name: &str) -> u32 {
    stack
        .processes()
        .into_iter()
        .find(|process| process.name == name)
        .unwrap()
        .pid
}

fn port_of(stack: &Stack, name: &str) -> u16 {
    stack
        .processes()
        .into_iter()
        .find(|process| process.name == name)
        .unwrap()
        .ports[0]
}
