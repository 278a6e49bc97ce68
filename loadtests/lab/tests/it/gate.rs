//! The correctness gate over everything that is registered: each touch and each announcement is killed under load, and the
//! audit holds it to its promise. A new file on an axis is covered without an edit here.

use serde_json::Value;

use crate::rowlock::{Folder, json, machine, run_expecting, run_experiment};

/// Stack of these tests.
const NAME: &str = "it-gate";

/// A tenth of the tours changes the configuration. The load ends when the last fault was recovered from.
const LOAD: &str = r#"
question = "Does each alternative keep its promise when a replica is killed and PostgreSQL is shut down at once?"
users = 6
warm_up = "0s"
duration = "150s"
rounds = 1
token = "once"
payload = "create-tour.json"
rows_per_tour = 87
changes = 0.1
retry = "60s"

[common]
rtt = { db = "0.5ms" }
replicas = { gateway = 1, user = 1, tour-data = 2 }
"#;

/// The faults of the first run: one replica of two ends, and then the server that keeps everything.
const REPLICA_AND_DATABASE: [[&str; 3]; 2] = [["tour-data-1", "1500ms", "300ms"], ["postgres", "3s", "300ms"]];
/// Those of the second, for announcements: all replicas end, and then the broker.
const REPLICAS_AND_BROKER: [[&str; 3]; 2] = [["tour-data", "1500ms", "300ms"], ["rabbitmq", "3s", "300ms"]];

/// Names of the alternatives of an axis that change what readers or subscribers see.
fn registered(axis: &str) -> Vec<String> {
    let fixes = json(&run_expecting(0, &["fixes", "--axis", axis, "--json"]));
    let names = fixes.as_array().unwrap().iter();
    let mut names: Vec<String> = names.map(|fix| fix["name"].as_str().unwrap().to_owned()).collect();
    // They come ranked by what was measured on this machine last.
    names.sort();
    assert!(names.len() > 1, "{fixes:#}");
    names
}

/// An arm of this name. Nobody waits for the broker until it is back, which would hide what is lost without it.
fn arm(name: &str, settings: &[(&str, &str)]) -> String {
    let settings = [settings, &[("PUBLISH_TIMEOUT", "300ms")]].concat();
    let settings: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("TOUR_DATA_{name} = \"{value}\""))
        .collect();
    format!("[[arm]]\nname = \"{name}\"\nsettings = {{ {} }}\n", settings.join(", "))
}

/// Runs the arms under the faults, and gives the results when everything that was promised has been kept.
fn run(name: &str, arms: &[String], faults: &[[&str; 3]]) -> Vec<Value> {
    let folder = Folder::new(name);
    let faults = faults.iter().map(|[target, at, duration]| {
        format!("[[fault]]\nkind = \"kill\"\ntarget = \"{target}\"\nat = \"{at}\"\nfor = \"{duration}\"\n")
    });
    let lines: String = arms.iter().cloned().chain(faults).collect();
    let results = run_experiment(&folder, &format!("{LOAD}{lines}"), NAME, &["--until-recovered"]);
    let measured = results["arms"].as_array().unwrap().clone();
    assert_eq!(measured.len(), arms.len(), "{results:#}");
    for arm in &measured {
        assert_eq!(arm["faults"].as_array().unwrap().len(), 2, "{arm:#}");
        assert_eq!(
            arm["errors"],
            serde_json::json!({}),
            "a repeated request was given up: {arm:#}"
        );
        let audit = &arm["audit"];
        assert_eq!(audit["passed"], true, "{audit:#}");
        assert!(audit["acknowledged"].as_u64().unwrap() > 20, "{audit:#}");
        let checks: Vec<&str> = audit["checks"].as_array().unwrap().iter().map(check_name).collect();
        for check in ["rows-per-tour", "lost-acknowledged", "message-per-acknowledged"] {
            assert!(checks.contains(&check), "{check} was not looked at: {checks:?}");
        }
        let changes = arm["staleness"]["changes"].as_u64();
        // Nobody can be late with what a touch never writes.
        if audit["promised"] != "unwritten" {
            assert!(changes.is_some_and(|changes| changes > 0), "{arm:#}");
            assert!(
                audit["judged_reads"].as_u64().unwrap() > 0,
                "no read had to show what was written after the faults: {arm:#}"
            );
        }
    }
    measured
}

fn check_name(check: &Value) -> &str {
    check["name"].as_str().unwrap()
}

#[test]
fn every_touch_and_every_announcement_loses_no_more_than_it_declares_when_parts_die() {
    let _machine = machine();
    let (touches, announcements) = (registered("touch"), registered("announce"));
    // Each with all of the others would be a day's work; each is killed, and who goes with whom changes with their numbers.
    let pairs = (0..touches.len().max(announcements.len())).map(|at| {
        let (touch, announce) = (&touches[at % touches.len()], &announcements[at % announcements.len()]);
        arm(
            &format!("{touch}, {announce}"),
            &[("TOUCH", touch.as_str()), ("ANNOUNCE", announce.as_str())],
        )
    });
    run("gate", &pairs.collect::<Vec<_>>(), &REPLICA_AND_DATABASE);
}

#[test]
fn every_way_to_insert_and_every_placement_keeps_the_rows_when_parts_die() {
    let _machine = machine();
    let (inserts, placements) = (registered("inserts"), registered("placement"));
    let inserts = inserts
        .iter()
        .map(|inserts| arm(inserts, &[("TOUCH", "update-last"), ("INSERTS", inserts)]));
    // The published one is that of all other arms. With the others the tenant lives in a schema of its own.
    let placements = placements
        .iter()
        .filter(|placement| *placement != "single")
        .map(|placement| {
            let settings = [
                ("TOUCH", "update-last"),
                ("PLACEMENT", placement.as_str()),
                ("SHARDS", "shard_1"),
            ];
            arm(placement, &settings) + "act = { tour-data = [\"move-tenant BEHNGT shard_1\"] }\n"
        });
    run(
        "gate-rows",
        &inserts.chain(placements).collect::<Vec<_>>(),
        &REPLICA_AND_DATABASE,
    );
}

#[test]
fn every_announcement_outlives_the_broker_or_loses_what_it_declares() {
    let _machine = machine();
    let arms: Vec<String> = registered("announce")
        .iter()
        .map(|announce| arm(announce, &[("TOUCH", "update-last"), ("ANNOUNCE", announce)]))
        .collect();
    for arm in run("gate-broker", &arms, &REPLICAS_AND_BROKER) {
        let (name, audit) = (&arm["name"], &arm["audit"]);
        if name == "fire-and-forget" {
            assert!(audit["lost_messages"].as_u64().unwrap() > 0, "{audit:#}");
            assert_eq!(audit["duplicates"], 0, "{audit:#}");
        } else {
            assert_eq!(audit["lost_messages"], 0, "{audit:#}");
        }
    }
}
