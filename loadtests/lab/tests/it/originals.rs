//! The tools that published tests were made with, against a stack of ours.

use std::process::{Command, Output};

use serde_json::Value;

use crate::rowlock::{Detached, Folder, json, machine, run_expecting, text};
use crate::tours::{credentials, token};

const NAME: &str = "it-originals";
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn k6_creates_tours_and_hey_passes_the_token_check_with_the_shipped_scripts() {
    let _machine = machine();
    let set = "GATEWAY_RATE_LIMIT=60000000";
    let arguments = ["--port-base", "free", "--touch", "update-last", "--set", set];
    let stack = Detached::up(NAME, &arguments);
    let listed = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    let front = listed["front"].as_str().unwrap();
    let folder = Folder::new("originals");
    let summary = folder.path().join("k6.json");
    let created = k6(&stack.printed, front, &summary);
    let asked = hey(&stack.printed, front);
    stack.down();

    assert!(created.status.success(), "{}", text(&created));
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    let metrics = &summary["metrics"];
    // Two checks an iteration: the token is granted, the tour is created.
    assert!(metrics["checks"]["passes"].as_u64().unwrap() >= 20, "{metrics:#}");
    assert_eq!(metrics["checks"]["fails"], 0, "{metrics:#}");
    assert_eq!(metrics["vus_max"]["max"], 10, "{metrics:#}");

    assert!(asked.status.success(), "{}", text(&asked));
    let (ok, others) = statuses(&String::from_utf8_lossy(&asked.stdout));
    assert!(ok >= 10 && others == 0, "{}", text(&asked));
}

fn k6(up: &Output, front: &str, summary: &std::path::Path) -> Output {
    let program =
        std::env::var_os("ROWLOCK_TEST_K6").expect("`cargo rowlock test` installs k6 and sets ROWLOCK_TEST_K6");
    let (id, secret) = credentials(up);
    Command::new(program)
        .args(["run", "--no-usage-report", "--quiet", "--no-color", "--summary-export"])
        .arg(summary)
        .arg(format!("{SCRIPTS}/k6/create-tour.js"))
        .envs([
            ("FRONT", front),
            ("CLIENT_ID", &id),
            ("CLIENT_SECRET", &secret),
            ("DURATION", "3s"),
        ])
        .output()
        .expect("k6 starts")
}

fn hey(up: &Output, front: &str) -> Output {
    let token = token(up, front);
    Command::new(format!("{SCRIPTS}/hey/get-tenant.sh"))
        .envs([("FRONT", front), ("TOKEN", &token), ("DURATION", "2s")])
        .output()
        .expect("the script starts")
}

/// Answers with 200, and all others with the requests that got none, from lines such as `[200] 1234 responses`.
fn statuses(printed: &str) -> (u64, u64) {
    let mut counts = (0, 0);
    for line in printed.lines() {
        let Some((kind, rest)) = line.trim().strip_prefix('[').and_then(|line| line.split_once(']')) else {
            continue;
        };
        match rest.trim().strip_suffix(" responses") {
            Some(count) if kind == "200" => counts.0 += count.parse::<u64>().unwrap(),
            // Under "Error distribution" the number stands in the brackets.
            _ => counts.1 += 1,
        }
    }
    counts
}
