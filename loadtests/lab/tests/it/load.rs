//! The load engine by itself, against a server of the test's own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::rowlock::{Folder, json, run_expecting, text};

/// Answers `/fails` with 503 and all else with 200, after 5 ms; until the process ends.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => head.extend_from_slice(&buffer[..length]),
            }
        }
        std::thread::sleep(Duration::from_millis(5));
        let status = if head.starts_with(b"GET /fails ") {
            "503 No"
        } else {
            "200 OK"
        };
        stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())?;
        head.clear();
    }
}

#[test]
fn an_open_load_in_stages_says_what_became_of_its_sends() {
    let url = server();
    let arguments = [
        "--rate",
        "50",
        "--arrivals",
        "poisson",
        "--seed",
        "5",
        "--duration",
        "1s",
    ];
    let stages = ["--stage", "ramp:100:300ms", "--stage", "100:1s:200ms", "--json"];
    let summary = json(&run_expecting(
        0,
        &[&["load", url.as_str()], &arguments[..], &stages[..]].concat(),
    ));
    let plateaus = summary["plateaus"].as_array().unwrap();
    let levels: Vec<f64> = plateaus
        .iter()
        .map(|plateau| plateau["level"].as_f64().unwrap())
        .collect();
    assert_eq!(levels, [50.0, 100.0]);
    assert_eq!(summary["open"]["seed"], 5);
    let sent = summary["open"]["sent"].as_u64().unwrap();
    assert!((80..=230).contains(&sent), "150 ± 6 standard deviations: {sent}");
    assert!(
        plateaus
            .iter()
            .all(|plateau| plateau["raw_latency"]["p50"].as_u64() >= Some(5000)),
        "{summary:#}"
    );

    let output = run_expecting(0, &["load", url.as_str(), "--rate", "100", "--duration", "1s"]);
    let printed = text(&output);
    for part in [
        "from intended send",
        "from actual send",
        "late",
        "dropped",
        "skipped",
        "send lag p99",
        "100/s",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn a_threshold_or_a_missed_rate_ends_the_load_with_exit_status_1_and_the_reason() {
    let url = server();
    let fails = format!("{url}/fails");
    let shape = [
        "--users",
        "2",
        "--duration",
        "10m",
        "--threshold",
        "errors=5%/1s",
        "--json",
    ];
    let output = run_expecting(1, &[&["load", fails.as_str()], &shape[..]].concat());
    let reason = json(&output)["aborted"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("(100.0 %); the threshold is errors at most 5 %"),
        "{reason}"
    );
    assert!(text(&output).contains("ended before its time"), "{}", text(&output));

    let shape = [
        "--rate",
        "1000",
        "--in-flight",
        "1",
        "--duration",
        "10m",
        "--abort-below",
        "90%/1s",
    ];
    let output = run_expecting(1, &[&["load", url.as_str()], &shape[..]].concat());
    assert!(
        text(&output).contains("the system is slower than the rate"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_mix_comes_from_a_file() {
    let url = server();
    let folder = Folder::new("mix");
    let file = folder.path().join("mix.toml");
    let mix = format!("[[request]]\nurl = '{url}/a'\nweight = 3\n\n[[request]]\nurl = '{url}/fails'\nstatus = 503\n");
    std::fs::write(&file, mix).unwrap();
    let arguments = [
        "load",
        "--mix",
        file.to_str().unwrap(),
        "--users",
        "4",
        "--requests",
        "200",
        "--json",
    ];
    let summary = json(&run_expecting(0, &arguments));
    assert_eq!(
        (summary["ok"].as_u64(), &summary["errors"]),
        (Some(200), &serde_json::json!({}))
    );
    let drawn: Vec<u64> = (0..2)
        .map(|index| summary["parts"][index]["ok"].as_u64().unwrap())
        .collect();
    assert!(drawn[0] + drawn[1] == 200 && drawn[0] > drawn[1], "{drawn:?}");
}

#[test]
fn loads_that_make_no_sense_are_wrong_usage() {
    let url = "http://127.0.0.1:9/";
    for (arguments, reason) in [
        (&["--rate", "0"][..], "needs a --stage"),
        (&["--users", "1", "--rate", "1"], "cannot be used with"),
        (&["--users", "1", "--stage", "1"], "is no stage"),
        (&["--users", "1", "--threshold", "p95=5"], "500ms"),
        (&["--users", "1", "--threshold", "p95=5ms/11s"], "never be judged"),
        (&["--rate", "1", "--think", "1s"], "cannot be used with"),
        (&["--mix", "nowhere.toml"], "cannot be used with"),
    ] {
        let output = run_expecting(2, &[&["load", url], arguments].concat());
        assert!(text(&output).contains(reason), "{reason}: {}", text(&output));
    }
}
