//! The correctness gate over everything that is registered: each touch and each announcement is killed under load, and the
//! audit holds it to its promise. A new file on an axis is covered without an edit here.

use std::collections::BTreeMap;

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

/// A part that ends, when, and for how long.
type Fault = [&'static str; 3];

/// One replica of two ends, and then the server that keeps the rows.
const REPLICA_AND_DATABASE: [Fault; 2] = [["tour-data-1", "1500ms", "300ms"], ["postgres", "3s", "300ms"]];
/// The same, and then the server that keeps what is only remembered. When the load is over all replicas end at the 201 of a
/// change that nothing follows, and the server that keeps the rows at that of another.
const TOUCHES: [Fault; 5] = [
    REPLICA_AND_DATABASE[0],
    REPLICA_AND_DATABASE[1],
    ["redis", "4500ms", "300ms"],
    ["tour-data", LAST_CHANGE, "300ms"],
    ["postgres", LAST_CHANGE, "300ms"],
];
/// All replicas end, and then the broker, which does so once more at the 201 of a change that nothing follows.
const REPLICAS_AND_BROKER: [Fault; 3] = [
    ["tour-data", "1500ms", "300ms"],
    ["rabbitmq", "3s", "300ms"],
    ["rabbitmq", LAST_CHANGE, "300ms"],
];
/// All replicas end at the 201 of a change that nothing follows, more than once: what is written twice a second may have been
/// written just before.
const REPLICAS_AT_LAST: [Fault; 3] = [["tour-data", LAST_CHANGE, "300ms"]; 3];
const LAST_CHANGE: &str = "last-change";

/// The alternatives of an axis, by name.
fn registered(axis: &str) -> BTreeMap<String, Value> {
    let fixes = json(&run_expecting(0, &["fixes", "--axis", axis, "--json"]));
    let fixes = fixes.as_array().unwrap().iter();
    let fixes: BTreeMap<String, Value> = fixes
        .map(|fix| (fix["name"].as_str().unwrap().to_owned(), fix.clone()))
        .collect();
    assert!(fixes.len() > 1, "{fixes:#?}");
    fixes
}

/// Whether the end of a part may cost the alternative something, by its own word.
fn may_lose_by(fix: &Value, cause: &str) -> bool {
    losses_by(fix, cause).next().is_some()
}

/// Whether it may cost a change that was acknowledged.
fn may_lose_acknowledged_by(fix: &Value, cause: &str) -> bool {
    losses_by(fix, cause).any(|loss| loss["of"] == "acknowledged")
}

fn losses_by<'f>(fix: &'f Value, cause: &'f str) -> impl Iterator<Item = &'f Value> {
    let losses = fix["promise"]["loses"].as_array().into_iter().flatten();
    losses.filter(move |loss| {
        loss["causes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|declared| declared == cause)
    })
}

/// A change that nothing followed is there after the fault at its 201, unless the touch says that it may be lost by that.
fn assert_outlived(arm: &Value, touch: &Value) {
    for change in arm["last_changes"].as_array().into_iter().flatten() {
        let cause = match change["target"].as_str().unwrap() {
            "postgres" => "database",
            "rabbitmq" => "broker",
            _ => "replica",
        };
        let promised = touch["promise"]["config"] != "unwritten" && !may_lose_acknowledged_by(touch, cause);
        assert!(!promised || change["seen_s"].is_number(), "lost: {change} of {arm:#}");
    }
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
fn run(name: &str, arms: &[String], faults: &[Fault]) -> Vec<Value> {
    let folder = Folder::new(name);
    let lines = faults.iter().map(|[target, at, duration]| {
        format!("[[fault]]\nkind = \"kill\"\ntarget = \"{target}\"\nat = \"{at}\"\nfor = \"{duration}\"\n")
    });
    let lines: String = arms.iter().cloned().chain(lines).collect();
    let results = run_experiment(&folder, &format!("{LOAD}{lines}"), NAME, &["--until-recovered"]);
    let measured = results["arms"].as_array().unwrap().clone();
    assert_eq!(measured.len(), arms.len(), "{results:#}");
    for arm in &measured {
        let at_last = faults.iter().filter(|[_, at, _]| *at == LAST_CHANGE).count();
        assert_eq!(
            arm["faults"].as_array().unwrap().len(),
            faults.len() - at_last,
            "{arm:#}"
        );
        let last_changes = arm["last_changes"].as_array().map_or(0, Vec::len);
        assert_eq!(last_changes, at_last, "{arm:#}");
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
    let known = registered("touch");
    let touches: Vec<&String> = known.keys().collect();
    let announcements = Vec::from_iter(registered("announce").into_keys());
    // Each with all of the others would be a day's work; each is killed, and who goes with whom changes with their numbers.
    let pairs = (0..touches.len().max(announcements.len())).map(|at| {
        let (touch, announce) = (touches[at % touches.len()], &announcements[at % announcements.len()]);
        arm(
            &format!("{touch}, {announce}"),
            &[("TOUCH", touch.as_str()), ("ANNOUNCE", announce.as_str())],
        )
    });
    for arm in run("gate", &pairs.collect::<Vec<_>>(), &TOUCHES) {
        let touch = arm["name"].as_str().unwrap().split(", ").next().unwrap();
        assert_outlived(&arm, &known[touch]);
    }
}

#[test]
fn a_loss_that_is_declared_is_found_where_nothing_overwrites_it() {
    let _machine = machine();
    let arms = [arm("write-behind", &[("TOUCH", "write-behind")])];
    let measured = run("gate-lost", &arms, &REPLICAS_AT_LAST);
    let changes = measured[0]["last_changes"].as_array().unwrap();
    assert!(changes.iter().any(|change| change["seen_s"].is_null()), "{changes:#?}");
    assert!(
        measured[0]["audit"]["older_reads"].as_u64().unwrap() > 0,
        "{:#}",
        measured[0]
    );
}

#[test]
fn every_way_to_insert_and_every_placement_keeps_the_rows_when_parts_die() {
    let _machine = machine();
    let (inserts, placements) = (registered("inserts"), registered("placement"));
    let inserts = inserts
        .keys()
        .map(|inserts| arm(inserts, &[("TOUCH", "update-last"), ("INSERTS", inserts)]));
    // The published one is that of all other arms. With the others the tenant lives in a schema of its own.
    let placements = placements
        .iter()
        .filter(|(_, fix)| fix["baseline"] != true)
        .map(|(placement, _)| {
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
fn every_announcement_and_every_touch_that_needs_the_broker_outlive_it_or_lose_what_they_declare() {
    let _machine = machine();
    let (announcements, touches) = (registered("announce"), registered("touch"));
    let by_broker = touches.iter().filter(|(_, fix)| may_lose_by(fix, "broker"));
    let announced = announcements
        .keys()
        .map(|announce| arm(announce, &[("TOUCH", "update-last"), ("ANNOUNCE", announce)]));
    // Some have the name of an announcement.
    let touched = by_broker.map(|(touch, _)| arm(&format!("touch {touch}"), &[("TOUCH", touch)]));
    let arms: Vec<String> = announced.chain(touched).collect();
    assert!(arms.len() > announcements.len(), "no touch goes by way of the broker");
    for arm in run("gate-broker", &arms, &REPLICAS_AND_BROKER) {
        let audit = &arm["audit"];
        let touch = arm["name"].as_str().unwrap().strip_prefix("touch ");
        assert_outlived(&arm, &touches[touch.unwrap_or("update-last")]);
        // What is not waited for is lost here, and what may be lost is sent once.
        if arm["name"] == "fire-and-forget" {
            assert!(audit["lost_messages"].as_u64().unwrap() > 0, "{audit:#}");
            assert_eq!(audit["duplicates"], 0, "{audit:#}");
        } else {
            assert_eq!(audit["lost_messages"], 0, "{audit:#}");
        }
    }
}
