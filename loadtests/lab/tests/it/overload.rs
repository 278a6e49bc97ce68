//! Many times more load than the system has capacity for.

use std::time::Duration;

use serde_json::Value;

use crate::rowlock::{Detached, json, machine, run_expecting};
use crate::tours::{ToursLoad, token};

const NAME: &str = "it-overload";
/// What the edge lets through at once and lets wait; users beyond it are the overload.
const ROOM: u32 = 12;
const WITHIN: u32 = 10;
const BEYOND: u32 = 240;
const SERVICES: [&str; 3] = ["gateway", "tour-data", "user"];

#[test]
fn beyond_capacity_requests_are_refused_and_the_accepted_ones_stay_quick_in_flat_memory() {
    let _machine = machine();
    let room = ROOM.to_string();
    let bounds = ["GATEWAY_MAX_IN_FLIGHT", "GATEWAY_QUEUE_MAX"].map(|variable| format!("{variable}={room}"));
    let stack = Detached::up(
        NAME,
        &[
            "--port-base",
            "free",
            "--touch",
            "update-last",
            "--set",
            &bounds[0],
            "--set",
            &bounds[1],
        ],
    );
    let listed = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
    let front = listed["front"].as_str().unwrap();
    let tours = ToursLoad::new(front, &token(&stack.printed, front));
    let load = |users: u32, think: &str, duration: &str| {
        let users = users.to_string();
        let shape = ["--users", &users, "--think", think, "--duration", duration];
        tours.start(&[&shape[..], &["--warm-up", "1s"]].concat())
    };
    let within = json(&load(WITHIN, "0s", "3s").wait());
    assert_eq!(within["errors"], serde_json::json!({}), "{WITHIN} users fit: {within}");

    let mut beyond = load(BEYOND, "100ms", "8s");
    let mut memory = Vec::new();
    while !beyond.has_ended() {
        memory.push(rss_mb(&listed));
        std::thread::sleep(Duration::from_millis(250));
    }
    let beyond = json(&beyond.wait());
    stack.down();

    let errors = beyond["errors"].as_object().unwrap();
    assert!(
        errors.keys().eq(["status-503"]),
        "refused, and nothing else: {errors:?}"
    );
    let (accepted, refused) = (beyond["ok"].as_u64().unwrap(), errors["status-503"].as_u64().unwrap());
    assert!(
        accepted > 0 && refused > accepted,
        "{accepted} accepted, {refused} refused"
    );
    // Without a bound each of them would wait for all the others: 24 times as long.
    let (quiet, crowded) = (p95_ms(&within), p95_ms(&beyond));
    assert!(
        crowded < 10.0 * quiet + 500.0,
        "p95 {crowded} ms with {BEYOND} users, {quiet} ms with {WITHIN}"
    );

    // The first samples are of services that have only just met their load.
    let settled = memory[memory.len() / 3];
    let last = memory.iter().rev().find(|mb| **mb > 0.0).unwrap();
    assert!(*last < settled * 1.25 + 8.0, "memory grows: {memory:?} MB");
}

fn p95_ms(summary: &Value) -> f64 {
    summary["latency"]["p95"].as_f64().expect("µs") / 1000.0
}

/// Resident memory of all services.
fn rss_mb(listed: &Value) -> f64 {
    let processes = listed["processes"].as_array().unwrap().iter();
    let services = processes.filter(|process| SERVICES.contains(&process["component"].as_str().unwrap_or_default()));
    let kb = services.filter_map(|process| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process["pid"])).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    });
    kb.sum::<f64>() / 1024.0
}
