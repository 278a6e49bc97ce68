//! Faults under load: each is felt, is told by who should know, and passes; and nothing that was acknowledged is lost.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rowlock::{Folder, json, machine, run_expecting, start, text};

/// Stack of these tests.
const NAME: &str = "it-faults";
/// Longest time for all that is waited for, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A token for each request: the issuer is then a part that is missed.
const LOAD: &str = r#"
question = "Is anything lost when a part dies?"
users = 6
warm_up = "1s"
duration = "150s"
rounds = 1
token = "per-iteration"
payload = "create-tour.json"
rows_per_tour = 87
retry = "60s"
"#;

/// A part, and who tells while it is missing.
struct Part {
    name: &'static str,
    tells: Tells,
}

enum Tells {
    /// `/readyz` and `/metrics` of this service, by the dependency's name.
    Dependency(&'static str, &'static str),
    /// The front's `/metrics`.
    Front,
    /// Nobody is left to tell: the front itself is gone, and connections are refused.
    Refused,
}

const PARTS: [Part; 7] = [
    part("postgres", Tells::Dependency("tour-data", "postgresql")),
    part("redis", Tells::Dependency("tour-data", "redis")),
    part("haproxy", Tells::Refused),
    part("gateway", Tells::Front),
    part("tour-data", Tells::Dependency("gateway", "tour-data")),
    part("user", Tells::Dependency("gateway", "user")),
    part("rabbitmq", Tells::Dependency("tour-data", "rabbitmq")),
];

const fn part(name: &'static str, tells: Tells) -> Part {
    Part { name, tells }
}

#[test]
fn every_part_may_crash_under_load_and_nothing_acknowledged_is_lost() {
    let _machine = machine();
    let folder = Folder::new("faults");
    let faults: String = PARTS.iter().map(|part| fault("kill", part.name, "2s")).collect();
    let experiment = folder.path().join("crashes.toml");
    let touch = "TOUR_DATA_TOUCH = \"update-last\"";
    std::fs::write(
        &experiment,
        format!("{LOAD}[common.settings]\n{touch}\n[[arm]]\nname = \"all parts\"\n{faults}"),
    )
    .unwrap();
    let out = folder.path().join("out");
    let running = start(&[
        "run",
        experiment.to_str().unwrap(),
        "--until-recovered",
        "--json",
        "--name",
        NAME,
        "--out",
        out.to_str().unwrap(),
    ]);
    let mut events = Events::of(&out);
    for part in &PARTS {
        let inflicted = events.next(part.name, "inflicted");
        for (process, pid) in inflicted["hit"].as_object().unwrap() {
            assert!(is_gone(pid.as_u64().unwrap()), "{process} should be gone");
        }
        part.is_missed(&mut events);
        let recovered = events.next(part.name, "recovered");
        // Tours need no Redis: it is missed, but nobody waits for it.
        if part.name != "redis" {
            let felt =
                recovered["repeated"].as_u64().unwrap() > 0 || recovered["longest_gap_s"].as_f64().unwrap() > 1.0;
            assert!(felt, "no request failed or waited: {recovered}");
        }
    }
    let output = running.wait();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let arm = &json(&output)["arms"][0];
    assert_eq!(
        arm["errors"],
        serde_json::json!({}),
        "a repeated request was given up: {arm:#}"
    );
    assert_eq!(arm["audit"]["passed"], true, "{:#}", arm["audit"]);
    assert_eq!(arm["audit"]["may_lose_ms"], 0);
    assert_eq!(arm["audit"]["declared_losses"], 0);
    assert!(arm["audit"]["acknowledged"].as_u64().unwrap() > 50, "{arm:#}");
    assert_eq!(arm["faults"].as_array().unwrap().len(), PARTS.len());
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("kill rabbitmq"), "{report}");
}

#[test]
fn a_preset_that_gives_up_durability_loses_no_more_than_it_declares_and_the_report_says_so() {
    let _machine = machine();
    let folder = Folder::new("tuned");
    let experiment = folder.path().join("tuned.toml");
    std::fs::write(
        &experiment,
        format!(
            "{LOAD}[common]\npostgres = \"tuned\"\n[common.settings]\nTOUR_DATA_TOUCH = \"update-last\"\n[[arm]]\nname = \"tuned\"\n{}",
            fault("kill", "postgres", "500ms")
        ),
    )
    .unwrap();
    let out = folder.path().join("out");
    let arguments = [
        "run",
        experiment.to_str().unwrap(),
        "--until-recovered",
        "--json",
        "--name",
        NAME,
        "--out",
        out.to_str().unwrap(),
    ];
    let results = json(&run_expecting(0, &arguments));
    let audit = &results["arms"][0]["audit"];
    assert_eq!(
        (&audit["passed"], &audit["may_lose_ms"]),
        (&true.into(), &600.into()),
        "{audit:#}"
    );
    let lost = audit["declared_losses"].as_u64().unwrap();
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(
        report.contains("last 600 ms") && report.contains(&format!("Declared loss: {lost}.")),
        "{report}"
    );
}

fn fault(kind: &str, target: &str, duration: &str) -> String {
    format!("[[fault]]\nkind = \"{kind}\"\ntarget = \"{target}\"\nat = \"2s\"\nfor = \"{duration}\"\n")
}

impl Part {
    /// Waits until the part's absence is told, as long as it is absent.
    fn is_missed(&self, events: &mut Events) {
        let listed = json(&run_expecting(0, &["ps", "--name", NAME, "--json"]));
        let mut last = String::from("nobody was asked");
        loop {
            let (missed, said) = match self.tells {
                Tells::Dependency(service, dependency) => {
                    let admin = port(&listed, service, 1);
                    let ready = get(admin, "/readyz");
                    let metrics = get(admin, "/metrics");
                    (names(&ready, dependency) && metrics.contains(&down(dependency)), ready)
                }
                Tells::Front => {
                    let metrics = get(port(&listed, "haproxy", 1), "/metrics");
                    let wanted = r#"haproxy_server_status{proxy="gateways",server="gateway-1",state="DOWN"} 1"#;
                    (metrics.contains(wanted), metrics)
                }
                Tells::Refused => {
                    let front = listed["front"].as_str().unwrap().trim_start_matches("http://");
                    let refused = std::net::TcpStream::connect(front).is_err();
                    (refused, format!("{front} takes connections"))
                }
            };
            if missed {
                return;
            }
            last.clone_from(&said);
            assert!(
                !events.has_healed(self.name),
                "nobody told that {} was missing: {last}",
                self.name
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// `/readyz` names the dependency as missing.
fn names(ready: &str, dependency: &str) -> bool {
    let ready: Value = serde_json::from_str(ready).unwrap_or_default();
    let mut dependencies = ready["dependencies"].as_array().into_iter().flatten();
    dependencies.any(|each| each["name"] == dependency && each["ok"] == false && each["error"].is_string())
}

fn down(dependency: &str) -> String {
    let kind = if dependency == "postgresql" {
        "required"
    } else {
        "degradable"
    };
    format!(r#"service_dependency_up{{dependency="{dependency}",kind="{kind}"}} 0"#)
}

fn port(listed: &Value, component: &str, index: usize) -> u64 {
    let mut processes = listed["processes"].as_array().unwrap().iter();
    let process = processes.find(|process| process["component"] == component);
    let process = process.unwrap_or_else(|| panic!("{component} runs: {listed:#}"));
    process["ports"][index].as_u64().unwrap()
}

/// The body of an answer, whatever its status; empty without one.
fn get(port: u64, path: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()
            .unwrap();
        match client.get(format!("http://127.0.0.1:{port}{path}")).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    })
}

fn is_gone(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// The run's stream, as it grows.
struct Events {
    path: std::path::PathBuf,
    read: u64,
    seen: Vec<Value>,
}

impl Events {
    fn of(out: &Path) -> Self {
        let mut events = Self {
            path: out.join("events.jsonl"),
            read: 0,
            seen: Vec::new(),
        };
        events.wait("the load begins", |event| {
            event["event"] == "phase" && event["phase"] == "warm_up"
        });
        events
    }

    /// Waits for a fault on `target` to reach a state.
    fn next(&mut self, target: &str, state: &str) -> Value {
        let what = format!("the fault on {target} is {state}");
        let found = self.wait(&what, |event| {
            let failed =
                event["event"] == "arm_failed" || event["event"] == "run_finished" || event["state"] == "failed";
            failed || (event["target"] == target && event["state"] == state)
        });
        assert_eq!(found["state"], state, "{what}: {found}");
        found
    }

    fn has_healed(&mut self, target: &str) -> bool {
        self.more();
        self.seen
            .iter()
            .any(|event| event["target"] == target && event["state"] == "healed")
    }

    fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            self.more();
            if let Some(found) = self.seen.iter().find(|event| wanted(event)) {
                return found.clone();
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "not within {} s: {what}",
                PATIENCE.as_secs()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Reads the lines that have been completed since.
    fn more(&mut self) {
        let Ok(mut file) = std::fs::File::open(&self.path) else {
            return;
        };
        file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            self.read += line.len() as u64;
            self.seen.push(serde_json::from_str(&line).unwrap());
            line.clear();
        }
    }
}
