//! A stack in the foreground and in the background, watched and changed from other processes.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::rowlock::{Detached, eventually, json, machine, marked_like, run, run_expecting, start, text};
use crate::tours::{ToursLoad, token};

const NAME: &str = "it-up";

#[test]
fn a_stack_is_listed_scaled_under_load_and_ended_from_another_process() {
    let _machine = machine();
    let arguments = ["--port-base", "free", "--touch", "update-last", "--rtt", "db=1ms"];
    let stack = Detached::up(NAME, &arguments);
    let listed = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    assert_eq!(replicas(&listed, "tour-data"), 1);
    for name in ["postgres", "redis", "rabbitmq", "haproxy", "gateway", "user"] {
        assert!(replicas(&listed, name) >= 1, "{name} is missing: {listed:#}");
    }
    run_expecting(2, &["up", "--name", NAME, "--port-base", "free"]);

    let front = listed["front"].as_str().unwrap();
    let load = ToursLoad::new(front, &token(&stack.printed, front));
    // Edge and service fetch the issuer's keys while they start; that is not what is counted here.
    let tenant = format!("{front}/api/v1/tenants/BEHNGT");
    eventually("a token is taken", || {
        let output = run(&[
            "load",
            &tenant,
            "--requests",
            "1",
            "--json",
            "--header",
            &load.authorization,
        ]);
        (json(&output)["ok"] == 1).then_some(())
    });
    let load = load.start(&["--users", "4", "--duration", "8s"]);
    for replicas in ["tour-data=3", "tour-data=1", "tour-data=2"] {
        run_expecting(0, &["scale", replicas, "--name", NAME]);
    }
    let scaled = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    assert_eq!(replicas(&scaled, "tour-data"), 2);
    run_expecting(2, &["scale", "tour-dada=2", "--name", NAME]);
    let output = load.wait();
    let summary = json(&output);
    assert_eq!(
        summary["errors"],
        serde_json::json!({}),
        "requests were lost: {}",
        text(&output)
    );
    assert!(summary["ok"].as_u64().unwrap() > 0);
    // After the load, which repeats nothing: what a fault costs is the subject of other tests.
    faults_from_another_terminal();
    let scaled = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));

    let logs = run_expecting(0, &["logs", "tour-data-1", "--tail", "5", "--name", NAME]);
    assert!(
        (1..=5).contains(&String::from_utf8_lossy(&logs.stdout).lines().count()),
        "{}",
        text(&logs)
    );
    let wrong = run_expecting(2, &["logs", "tour-dada", "--name", NAME]);
    assert!(text(&wrong).contains("tour-data-1"), "{}", text(&wrong));
    assert!(json(&run_expecting(0, &["locks", "--json", "--name", NAME]))["waiters"].is_array());

    let (marker, left) = marked_like(first_pid(&scaled));
    stack.down();
    assert_eq!(left(), [] as [u32; 0], "left behind with {marker}");
    run_expecting(3, &["ps", "--name", NAME]);
}

/// Each heals before the command returns.
fn faults_from_another_terminal() {
    let fault = |code: i32, arguments: &[&str]| {
        let output = run_expecting(
            code,
            &[&["fault"], arguments, &["--for", "300ms", "--name", NAME]].concat(),
        );
        text(&output)
    };
    let before = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    assert!(fault(0, &["kill", "tour-data"]).contains("healed"));
    assert!(fault(0, &["cut", "db"]).contains("healed"));
    let after = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    assert_ne!(
        first_pid(&before),
        first_pid(&after),
        "it is another process on the same ports"
    );
    assert!(fault(2, &["kill", "tour-dada"]).contains("tour-data-1"));
    assert!(fault(2, &["cut", "tour-data"]).contains("broker"));
    assert!(fault(3, &["cut", "redis"]).contains("--rtt redis=1ms"));
    let out = std::fs::read_to_string(log_of_supervisor()).unwrap();
    assert!(
        out.contains("fault: kill tour-data has healed") && !out.contains("ended by itself"),
        "{out}"
    );
}

fn log_of_supervisor() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.rowlock")
        .join(NAME)
        .join("up.log")
}

#[test]
fn a_killed_supervisor_leaves_no_process_behind() {
    let _machine = machine();
    let mut up = start(&["up", "--name", NAME, "--port-base", "free"]);
    let listed = eventually("the stack answers `ps`", || {
        assert!(!up.has_ended(), "`up` ended early");
        let output = run(&["ps", "--name", NAME, "--json"]);
        output
            .status
            .success()
            .then(|| json(&output))
            .filter(|listed| listed["ready"] == true)
    });
    assert_eq!(listed["supervisor"].as_u64(), Some(u64::from(up.id())));
    let (marker, left) = marked_like(first_pid(&listed));
    assert!(left().len() > 5, "{marker} should be on every process");
    up.signal(Signal::SIGKILL);
    eventually("nothing of the stack is left", || left().is_empty().then_some(()));
    run_expecting(3, &["ps", "--name", NAME]);
}

fn processes(listed: &Value) -> impl Iterator<Item = &Value> {
    listed["processes"].as_array().expect("ps lists processes").iter()
}

fn replicas(listed: &Value, component: &str) -> usize {
    processes(listed)
        .filter(|process| process["component"] == component)
        .count()
}

fn first_pid(listed: &Value) -> u32 {
    let process = processes(listed)
        .find(|process| process["component"] == "tour-data")
        .expect("tour-data runs");
    u32::try_from(process["pid"].as_u64().unwrap()).unwrap()
}
