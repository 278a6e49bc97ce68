//! Runs: the demo shortened, the controls, and one that is cut off.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::rowlock::{Folder, eventually, json, machine, marked_like, run_expecting, run_experiment, start, text};

/// Stack of these tests; not the one of the user's own runs.
const NAME: &str = "it-run";

const CONTROL: &str = r#"
question = "Is the row blamed where nobody holds it?"
users = 10
warm_up = "1s"
duration = "4s"
rounds = 1
token = "once"
payload = "create-tour.json"
rows_per_tour = 87
changes = 0.2
[common]
rtt = { db = "1ms" }
[[arm]]
name = "none"
settings = { TOUR_DATA_TOUCH = "none" }
[[arm]]
name = "update-last"
settings = { TOUR_DATA_TOUCH = "update-last" }
[[arm]]
name = "4 tenants, 3 schemas"
tenants = 4
token = "per-iteration"
settings = { TOUR_DATA_TOUCH = "update-last", TOUR_DATA_PLACEMENT = "tenant-shards", TOUR_DATA_SHARDS = "shard_1,shard_2" }
[arm.act]
tour-data = ["move-tenant BEHNGT shard_1", "move-tenant TENANT01 shard_2", "move-tenant TENANT02 shard_2", "move-tenant TENANT02 shard_1"]
"#;

#[test]
fn the_demo_shortened_blames_the_row_and_moving_one_statement_helps() {
    let _machine = machine();
    let folder = Folder::new("demo");
    let output = run_expecting(
        0,
        &[
            "run",
            "row-lock-demo",
            "--rounds",
            "1",
            "--warm-up",
            "1s",
            "--duration",
            "3s",
            "--fast-locks",
            "--json",
            "--name",
            NAME,
            "--out",
            folder.str(),
        ],
    );
    let results = json(&output);
    check_format(&results, &["1 replica", "2 replicas", "1 replica, update-last"]);
    assert_eq!(results["completed"], true, "{}", text(&output));

    let [first, second, last] = [0, 1, 2].map(|arm| &results["arms"][arm]);
    let rate = |arm: &Value| arm["throughput"]["mean"].as_f64().unwrap();
    assert!(
        rate(last) > 2.0 * rate(first),
        "update-last {} against {}",
        rate(last),
        rate(first)
    );
    assert_eq!(last["changes"][0], "TOUR_DATA_TOUCH=update-last");
    for arm in [first, second] {
        assert_eq!(arm["bottleneck"]["cause"], "row-lock", "{arm:#}");
        let row = &arm["locks"]["rows"][0];
        assert_eq!(row["relation"], "tenant_config", "{row}");
        assert!(row["row"].as_str().unwrap().contains("BEHNGT"), "{row}");
    }

    let written: Value = serde_json::from_slice(&std::fs::read(folder.path().join("results.json")).unwrap()).unwrap();
    assert_eq!(written, results);
    check_reports(folder.path());
    let acknowledged = std::fs::read_dir(folder.path()).unwrap().filter_map(Result::ok);
    let left = acknowledged
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("acknowledged"))
        .count();
    assert_eq!(left, 0, "after an audit that held, nobody needs what was acknowledged");

    std::fs::remove_file(folder.path().join("report.html")).unwrap();
    assert_eq!(json(&run_expecting(0, &["report", folder.str(), "--json"])), results);
    check_reports(folder.path());
    let same = json(&run_expecting(0, &["compare", folder.str(), folder.str(), "--json"]));
    assert_eq!(same["changes"]["arms"][0]["throughput"]["ratio"], 1.0, "{same:#}");
    assert_eq!(
        same["changes"]["arms"][0]["throughput"]["finding"], "inconclusive",
        "{same:#}"
    );
    run_expecting(2, &["run", "row-lock-demo", "--name", NAME, "--out", folder.str()]);
}

#[test]
fn where_nobody_holds_the_row_long_it_is_not_blamed() {
    let _machine = machine();
    let folder = Folder::new("control");
    let results = run_experiment(&folder, CONTROL, NAME, &["--fast-locks"]);
    check_format(&results, &["none", "update-last", "4 tenants, 3 schemas"]);
    for arm in results["arms"].as_array().unwrap() {
        assert_ne!(arm["bottleneck"]["cause"], "row-lock", "{arm:#}");
    }
    for (arm, tenants) in [(0, 1), (1, 1), (2, 4)] {
        assert_eq!(results["arms"][arm]["audit"]["tenants"], tenants, "{results:#}");
    }
    let spread = &results["arms"][2];
    assert_eq!(spread["hold"]["rows"], 4, "{:#}", spread["hold"]);
    let checks = spread["audit"]["checks"].as_array().unwrap();
    for name in [
        "tour-of-its-tenant",
        "tenant-in-one-place",
        "reader-sees-no-overwritten-value",
    ] {
        assert!(checks.iter().any(|check| check["name"] == name), "{name}: {checks:#?}");
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_no_process_and_can_be_resumed() {
    let _machine = machine();
    let folder = Folder::new("interrupted");
    let out = folder.path().join("out");
    let running = start(&[
        "run",
        "row-lock-demo",
        "--rounds",
        "1",
        "--warm-up",
        "1s",
        "--duration",
        "1s",
        "--arm",
        "1 replica",
        "--arm",
        "1 replica, update-last",
        "--name",
        NAME,
        "--out",
        out.to_str().unwrap(),
    ]);
    let events = out.join("events.jsonl");
    eventually("the first measurement has a result", || {
        std::fs::read_to_string(&events)
            .ok()?
            .contains("\"event\":\"audit\"")
            .then_some(())
    });
    let listed = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    let pid = listed["processes"][0]["pid"]
        .as_u64()
        .and_then(|pid| u32::try_from(pid).ok())
        .unwrap();
    let (marker, left) = marked_like(pid);
    running.signal(Signal::SIGINT);
    let output = running.wait();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert_eq!(left(), [] as [u32; 0], "left behind with {marker}");

    let lines = std::fs::read_to_string(&events).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["completed"]),
        (&"run_finished".into(), &false.into())
    );
    let again = run_expecting(1, &["report", out.to_str().unwrap(), "--json"]);
    let results = json(&again);
    assert_eq!(results["completed"], false);
    assert!(results["arms"][0]["requests"].as_u64().unwrap() > 0, "{results:#}");
    run_expecting(3, &["ps", "--name", NAME]);

    let resumed = run_expecting(0, &["run", "--resume", out.to_str().unwrap(), "--json", "--name", NAME]);
    check_format(&json(&resumed), &["1 replica", "1 replica, update-last"]);
    let lines = std::fs::read_to_string(&events).unwrap();
    let started = lines.lines().filter(|line| line.contains("\"event\":\"arm_started\""));
    let first = started.filter(|line| line.contains("\"arm\":\"1 replica\"")).count();
    assert_eq!(first, 1, "what had a result was measured again");
    let complete = run_expecting(2, &["run", "--resume", out.to_str().unwrap(), "--name", NAME]);
    assert!(text(&complete).contains("complete"), "{}", text(&complete));
}

fn check_format(results: &Value, arms: &[&str]) {
    assert_eq!(results["schema"], 1);
    assert!(
        results["environment"]["servers"]["postgres"].is_string(),
        "{:#}",
        results["environment"]
    );
    assert!(results["claims"].is_array() && results["comparisons"].is_array());
    let seen = results["arms"].as_array().unwrap();
    assert_eq!(
        seen.iter().map(|arm| arm["name"].as_str().unwrap()).collect::<Vec<_>>(),
        arms
    );
    for arm in seen {
        for number in [
            "/throughput/mean",
            "/latency_ms/p50",
            "/latency_ms/p95",
            "/latency_ms/p99",
            "/latency_ms/max",
        ] {
            assert!(
                arm.pointer(number)
                    .and_then(Value::as_f64)
                    .is_some_and(|value| value > 0.0),
                "{number} of {arm:#}"
            );
        }
        assert_eq!(arm["errors"], serde_json::json!({}), "{arm:#}");
        assert!(
            // What a link adds at the least, however busy the machine was when it was tuned.
            arm["rtt_ms"].as_f64().unwrap() >= 0.7,
            "the emulated round trip is missing: {arm:#}"
        );
        assert_eq!(arm["audit"]["passed"], true, "{:#}", arm["audit"]);
        assert!(
            arm["audit"]["checks"].as_array().unwrap().len() >= 4,
            "{:#}",
            arm["audit"]
        );
        assert!(
            arm["audit"]["acknowledged"].as_u64() >= arm["requests"].as_u64(),
            "{:#}",
            arm["audit"]
        );
        assert!(
            arm["audit"]["delivered"].as_u64() >= arm["audit"]["acknowledged"].as_u64(),
            "{:#}",
            arm["audit"]
        );
    }
}

fn check_reports(folder: &Path) {
    let markdown = std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(
        markdown.contains("tenant_config") && markdown.contains("update-last"),
        "{markdown}"
    );
    let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.len() < 1_000_000 && html.contains("<svg"), "{} bytes", html.len());
}
