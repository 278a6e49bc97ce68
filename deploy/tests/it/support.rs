//! What the tests share.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deploy::{PortBase, Topology};
use serde_json::Value;

/// Servers alone, on ports that are free.
pub(crate) fn servers(name: &str) -> Topology {
    Topology {
        port_base: PortBase::Free,
        ..Topology::servers_only(name)
    }
}

/// Where a stack keeps its state.
pub(crate) fn state(name: &str) -> PathBuf {
    deploy::root().join(".rowlock").join(name)
}

/// What a stack has written about its run.
pub(crate) fn state_json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(state(name).join("state.json")).unwrap()).unwrap()
}

/// The processes that carry the marker of a run, by an own look at `/proc`.
pub(crate) fn marked(run: &str) -> Vec<u32> {
    let marker = format!("ROWLOCK_RUN={run}");
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker.as_bytes())
    })
    .collect()
}

/// True while there is such a process and it is not a zombie.
pub(crate) fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The pids a run has recorded.
pub(crate) fn recorded(state: &Value) -> Vec<u64> {
    state["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["pid"].as_u64().unwrap())
        .collect()
}

/// Waits until `done`, at most a minute.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().unwrap().permissions().mode() & 0o777
}
