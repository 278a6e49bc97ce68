//! Experiments, shortened: each must show what it is there to show.

use serde_json::Value;

use crate::rowlock::{Folder, json, machine, run_expecting, run_experiment};

/// Runs one round of an experiment's arms and gives `results.json`.
fn shortened(experiment: &str, duration: &str, arms: &[&str]) -> Value {
    let _machine = machine();
    let folder = Folder::new(experiment);
    let mut arguments = vec![
        "run",
        experiment,
        "--rounds",
        "1",
        "--warm-up",
        "1s",
        "--duration",
        duration,
        "--json",
        "--name",
        "it-run",
        "--out",
        folder.str(),
    ];
    for arm in arms {
        arguments.extend(["--arm", arm]);
    }
    json(&run_expecting(0, &arguments))
}

#[test]
fn a_preset_that_is_only_reloaded_is_said_to_be_half_in_force() {
    let results = shortened("reload-only", "1s", &["tuned, reloaded only", "tuned, restarted"]);
    let not_in_force = |arm: usize| -> Vec<String> {
        let list = results["arms"][arm]["not_in_force"].as_array().unwrap().iter();
        list.map(|each| each.as_str().unwrap().to_owned()).collect()
    };
    let reloaded = not_in_force(0);
    assert_eq!(reloaded.len(), 2, "{reloaded:?}");
    assert!(
        reloaded
            .iter()
            .any(|each| each.starts_with("shared_buffers should be 1GB and is 128MB")),
        "{reloaded:?}"
    );
    assert!(
        reloaded.iter().any(|each| each.starts_with("wal_buffers")),
        "{reloaded:?}"
    );
    assert!(not_in_force(1).is_empty(), "{:?}", not_in_force(1));
}

#[test]
fn a_slow_consumer_shows_in_the_queue_and_not_in_the_errors() {
    let results = shortened("slow-consumer", "4s", &[]);
    let [healthy, slow] = [0, 1].map(|arm| &results["arms"][arm]);
    let queued = |arm: &Value| arm["queue_max"].as_u64().unwrap();
    assert!(
        queued(slow) > queued(healthy) + 20,
        "{} against {}",
        queued(slow),
        queued(healthy)
    );
    assert!(slow["drain_s"].as_f64().unwrap() > healthy["drain_s"].as_f64().unwrap());
    assert_eq!(slow["errors"], healthy["errors"]);
    assert_eq!(slow["audit"]["passed"], true);
}

/// Runs an experiment about a mistake that preflight has to stop, and gives `results.json`.
fn stopped(experiment: &str, check: &str) -> Value {
    let results = shortened(experiment, "1s", &[]);
    let refused = results["refused"].as_array().unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["id"], check, "{refused:?}");
    // The arm without the mistake passes every check, and is measured.
    let arms = results["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 1, "{arms:?}");
    let checks = arms[0]["preflight"].as_array().unwrap();
    assert_eq!(checks.len(), 11, "{checks:?}");
    assert!(checks.iter().all(|check| check["ok"] == true), "{checks:?}");
    results
}

#[test]
fn replicas_under_different_environments_are_stopped_before_they_are_measured() {
    let results = stopped("different-environments", "config-digest");
    let says = results["refused"][0]["says"].as_str().unwrap();
    assert!(says.contains("gateway-2") && says.contains("rate_limit"), "{says}");
}

#[test]
fn a_balancer_that_does_not_spread_is_stopped_before_it_is_measured() {
    let results = stopped("balancer-does-not-spread", "front-spread");
    let says = results["refused"][0]["says"].as_str().unwrap();
    assert!(says.contains("gateway-2 0"), "{says}");
}

/// Two arms that differ in the order of locks alone; a snapshot grows old beside the one that has nothing to wait for.
const ORDER: &str = r#"
question = "Does the order of locks decide, and is a snapshot seen that is kept open?"
users = 6
warm_up = "1s"
duration = "4s"
rounds = 1
token = "once"
payload = "create-tour.json"
rows_per_tour = 87
changes = 0.3
retry = "60s"
[common]
rtt = { db = "0.5ms" }
schema = ["tour-foreign-key", "tenant-info-index"]
[[arm]]
name = "row last"
settings = { TOUR_DATA_TOUCH = "update-last" }
[[arm]]
name = "row first"
settings = { TOUR_DATA_TOUCH = "update-first" }
[[fault]]
kind = "old-snapshot"
target = "postgres"
at = "500ms"
for = "2500ms"
arms = ["row first"]
"#;

#[test]
fn the_weak_lock_first_deadlocks_and_is_explained_and_a_fault_is_suffered_by_its_arm_alone() {
    let _machine = machine();
    let folder = Folder::new("order");
    let results = run_experiment(&folder, ORDER, "it-run", &[]);
    let [last, first] = [0, 1].map(|arm| &results["arms"][arm]);
    assert!(last["deadlocks"]["count"].as_u64().unwrap() >= 1, "{last:#}");
    let kind = &last["deadlocks"]["kinds"][0];
    assert!(kind["circle"].as_array().unwrap().len() >= 2, "{kind:#}");
    let statement = kind["circle"][0]["statement"].as_str().unwrap();
    assert!(statement.starts_with("UPDATE tenant_config SET"), "{kind:#}");
    let why = kind["why"].as_str().unwrap();
    for part in ["tour (tour_tenant_config)", "tenant_info (tenant_config_info)"] {
        assert!(why.contains(part), "{why}");
    }
    assert_eq!(first["deadlocks"]["count"], 0, "{first:#}");

    // About half of the tours begin while the snapshot is kept.
    let age = first["versions"]["snapshot_age"].as_u64().unwrap();
    let requests = first["requests"].as_u64().unwrap();
    assert!(5 * age >= requests, "{age} of {requests}");
    let faults = |arm: &Value| arm["faults"].as_array().unwrap().len();
    assert_eq!((faults(last), faults(first)), (0, 1));
    let report = std::fs::read_to_string(folder.path().join("out/report.md")).unwrap();
    for part in [
        "## Deadlocks",
        "What to do: Take locks in one order",
        "old-snapshot postgres",
    ] {
        assert!(report.contains(part), "{part} in {report}");
    }
}
