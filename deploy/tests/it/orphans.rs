//! However a stack ends, and however its start fails: no process is left of it.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus, Stdio};

use deploy::control::Remote;
use deploy::{PortBase, Stack, Topology};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::support::{eventually, is_alive, marked, recorded, servers, state, state_json};

/// Set for the process that [`supervisor`] starts; its value is the name of the stack.
const SUPERVISE: &str = "ROWLOCK_TEST_SUPERVISE";
const READY: &str = "the stack is ready";

/// The body of the supervisor processes of this file, which are this very test executable; nothing by itself.
#[tokio::test]
async fn a_supervisor_for_the_other_tests() {
    let Ok(name) = std::env::var(SUPERVISE) else { return };
    let mut panics = signal(SignalKind::user_defined1()).unwrap();
    let stack = Stack::up(servers(&name), &mut |_| ()).await.unwrap();
    println!("\n{READY}");
    let mut quiet = |_: &str| ();
    tokio::select! {
        ended = stack.supervise(&mut quiet) => ended.unwrap(),
        _ = panics.recv() => panic!("as asked"),
    }
}

/// The command line of the supervisor, to be run by a shell.
fn supervise() -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "{} --exact orphans::a_supervisor_for_the_other_tests --nocapture",
        program.display()
    )
}

/// A process of its own that has brought a stack up.
fn supervisor(name: &str) -> Child {
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("exec {}", supervise())])
        .env(SUPERVISE, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Borrowed: its end of the pipe must stay open, or what it prints last would end it.
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == READY);
    assert!(ready, "the supervisor ended before its stack was ready");
    child
}

#[tokio::test]
async fn a_supervisor_killed_by_kill_9_leaves_no_process_and_the_next_up_starts_clean() {
    let name = "test-killed";
    let mut child = supervisor(name);
    let run = state_json(name);
    let id = run["run"].as_str().unwrap();
    assert!(marked(id).len() >= 3, "PostgreSQL, Redis and RabbitMQ carry the marker");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no process carries the marker", || marked(id).is_empty());
    eventually("every recorded process is gone", || {
        !recorded(&run).into_iter().any(is_alive)
    });

    let stack = Stack::up(servers(name), &mut |_| ()).await.unwrap();
    assert_ne!(state_json(name)["run"], run["run"]);
    stack.down().await.unwrap();
}

#[tokio::test]
async fn what_a_run_without_guardian_left_is_ended_by_the_next_up_and_nothing_else_is() {
    let name = "test-stale";
    let mut child = supervisor(name);
    let mut run = state_json(name);
    let id = run["run"].as_str().unwrap().to_owned();
    let guardian = guardian_of(&id);
    kill(guardian);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the guardian is gone", || !is_alive(guardian));
    let left = recorded(&run);
    assert!(left.iter().copied().all(is_alive), "nobody is left to end them");

    // A pid that was reused: the record matches it in everything but the marker.
    let mut innocent = Command::new("sleep").arg("600").spawn().unwrap();
    let start = std::fs::read_to_string(format!("/proc/{}/stat", innocent.id())).unwrap();
    let start: u64 = start
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(19)
        .unwrap()
        .parse()
        .unwrap();
    let mut record = run["processes"][0].clone();
    record["pid"] = innocent.id().into();
    record["start_ticks"] = start.into();
    run["processes"].as_array_mut().unwrap().push(record);
    std::fs::write(state(name).join("state.json"), run.to_string()).unwrap();

    let mut lines = Vec::new();
    let stack = Stack::up(servers(name), &mut |line| lines.push(line.to_owned()))
        .await
        .unwrap();
    assert!(marked(&id).is_empty());
    assert!(!left.into_iter().any(is_alive), "a recorded process is still there");
    assert!(
        lines.iter().any(|line| line.contains("left over from a killed run")),
        "{lines:?}"
    );
    assert!(
        innocent.try_wait().unwrap().is_none(),
        "a process that only shares the pid was ended"
    );
    innocent.kill().unwrap();
    innocent.wait().unwrap();
    stack.down().await.unwrap();
}

/// What is asked of a supervisor, and whether it then ends as one that was asked politely does.
enum End {
    Signal(Signal, bool),
    Down,
}

#[tokio::test]
async fn whatever_ends_the_supervisor_nothing_is_left_and_the_next_up_starts_clean() {
    let name = "test-ended";
    for (says, end) in [
        ("Ctrl-C", End::Signal(Signal::SIGINT, true)),
        ("SIGTERM", End::Signal(Signal::SIGTERM, true)),
        ("a panic", End::Signal(Signal::SIGUSR1, false)),
        ("`down` from another terminal", End::Down),
    ] {
        let mut child = supervisor(name);
        eventually("it takes commands", || !state_json(name)["control"].is_null());
        let run = state_json(name);
        let id = run["run"].as_str().unwrap();
        assert!(marked(id).len() >= 3 && writing_to_logs_of(name).len() >= 3, "{says}");
        let politely = match end {
            End::Signal(signal, politely) => {
                let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
                nix::sys::signal::kill(pid, signal).unwrap();
                politely
            }
            End::Down => {
                Remote::find(name).unwrap().down().await.unwrap();
                true
            }
        };
        let status: ExitStatus = child.wait().unwrap();
        assert_eq!(status.success(), politely, "{says}: {status}");
        if !politely {
            eventually("its guardian has cleaned up", || marked(id).is_empty());
        }
        assert_eq!(marked(id), [0; 0], "{says}");
        assert!(!recorded(&run).into_iter().any(is_alive), "{says}");
        eventually("the guardian itself is gone", || writing_to_logs_of(name).is_empty());
    }
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_no_process() {
    // The first port that a service gets: it is found to be taken when the guardian already watches.
    let (_held, base) = (20000..30000)
        .step_by(97)
        .find_map(|base: u16| Some((TcpListener::bind(("127.0.0.1", base + 20)).ok()?, base)))
        .unwrap();
    let taken = Topology {
        port_base: PortBase::Fixed(base),
        ..Topology::standard("test-taken")
    };
    // Its name is right, so the service itself has to refuse it, when all servers run.
    let mut wrong = Topology {
        port_base: PortBase::Free,
        ..Topology::standard("test-wrong")
    };
    wrong
        .settings
        .insert("TOUR_DATA_DB_POOL_MAX".to_owned(), "none".to_owned());
    for (topology, told) in [(taken, "--port-base"), (wrong, "TOUR_DATA_DB_POOL_MAX")] {
        let name = topology.name.clone();
        let error = Stack::up(topology, &mut |_| ()).await.unwrap_err();
        assert!(error.exit_code() == 3 && error.to_string().contains(told), "{error}");
        assert!(Remote::find(&name).is_none());
        eventually("no process is left", || writing_to_logs_of(&name).is_empty());
    }
}

/// Files that cannot grow are what a full disk looks like to the servers; as a limit of the process it needs no disk.
#[test]
fn a_start_without_space_leaves_no_process() {
    let name = "test-nospace";
    // A cluster that is there already would not have to be made.
    let _ = std::fs::remove_dir_all(state(name));
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("ulimit -f 100; exec {}", supervise())])
        .env(SUPERVISE, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success(), "it came up: {status}");
    eventually("no process is left", || writing_to_logs_of(name).is_empty());
    assert!(Remote::find(name).is_none());
}

/// Where mounting is permitted, a server's program is hidden from the start, as if it were not installed.
#[test]
fn a_start_without_a_server_names_it_and_leaves_no_process() {
    let name = "test-missing";
    let hide = "mount --bind /dev/null /usr/bin/redis-server && exec";
    let hidden = Command::new("unshare")
        .args(["--mount", "/bin/sh", "-c", &format!("{hide} {}", supervise())])
        .env(SUPERVISE, name)
        .output();
    let Ok(output) = hidden else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if said.contains("not permitted") || said.contains("denied") {
        return;
    }
    assert!(!output.status.success() && said.contains("redis-server"), "{said}");
    eventually("no process is left", || writing_to_logs_of(name).is_empty());
    assert!(Remote::find(name).is_none());
}

/// Every process whose output goes to a log of the stack, the guardian included: found without knowing the run's marker.
fn writing_to_logs_of(name: &str) -> Vec<u32> {
    let Ok(logs) = state(name).canonicalize() else {
        return Vec::new();
    };
    let logs = logs.join("logs");
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        std::fs::read_link(format!("/proc/{pid}/fd/2")).is_ok_and(|to| to.starts_with(&logs))
            && is_alive(u64::from(*pid))
    })
    .collect()
}

fn guardian_of(run: &str) -> u64 {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.into_iter()
        .find(|pid: &u64| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&format!("--run\0{run}"))
        })
        .expect("the run has a guardian")
}

fn kill(pid: u64) {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}
