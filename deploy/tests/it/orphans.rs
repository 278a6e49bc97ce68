//! What happens when the supervisor is killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use deploy::Stack;

use crate::support::{eventually, is_alive, marked, recorded, servers, state, state_json};

/// Set for the process that [`supervisor`] starts; its value is the name of the stack.
const SUPERVISE: &str = "ROWLOCK_TEST_SUPERVISE";
const READY: &str = "the stack is ready";

/// The body of the supervisor processes of this file, which are this very test executable; nothing by itself.
#[tokio::test]
async fn a_supervisor_for_the_other_tests() {
    let Ok(name) = std::env::var(SUPERVISE) else { return };
    let _stack = Stack::up(servers(&name), &mut |_| ()).await.unwrap();
    println!("\n{READY}");
    std::future::pending::<()>().await;
}

/// A process of its own that has brought a stack up.
fn supervisor(name: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "orphans::a_supervisor_for_the_other_tests", "--nocapture"])
        .env(SUPERVISE, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
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
