//! For tests that start one real server by itself, without a stack around it.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::process::Launch;

/// Long enough for a machine that builds at the same time.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A folder that is removed at the end of the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// `name` is unique among the tests of this crate.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rowlock-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port nobody listened on a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// A started server, killed with its children when it is dropped before it was stopped.
pub(crate) struct Started {
    child: Child,
    signal: Signal,
}

impl Started {
    /// Starts it and waits until `probe` succeeds.
    pub(crate) async fn new<F, Fut>(launch: &Launch, mut probe: F) -> Self
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<(), String>>,
    {
        let log = launch.cwd.join(format!("{}.log", launch.name));
        let output = fs::File::create(&log).unwrap();
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).current_dir(&launch.cwd).process_group(0);
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command.envs(launch.env.iter().map(|(name, value)| (name, value)));
        command.stdout(output.try_clone().unwrap()).stderr(output);
        if let Some((uid, gid)) = launch.user {
            command.uid(uid).gid(gid);
        }
        let child = command.spawn().unwrap();
        let mut started = Self {
            child,
            signal: launch.stop.signal,
        };
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let answer = probe().await;
            let ended = started.child.try_wait().unwrap();
            match answer {
                Ok(()) if ended.is_none() => return started,
                _ if ended.is_some() || Instant::now() > deadline => {
                    let said = fs::read_to_string(&log).unwrap_or_default();
                    panic!("{} is not ready: {answer:?}, {ended:?}\n{said}", launch.name);
                }
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Ends it the polite way and waits for that.
    pub(crate) async fn stop(mut self) {
        kill(self.pid(), self.signal).unwrap();
        self.child.wait().await.unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id().expect("not waited for yet")).unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(pid) = self.child.id() {
            let _ = killpg(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL);
        }
    }
}

/// Addresses a process and its descendants listen on, `127.0.0.1:17404`, as the kernel tells.
pub(crate) fn listening(root: Pid) -> Vec<String> {
    let mut inodes = Vec::new();
    for pid in descendants(root.as_raw()) {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        for descriptor in descriptors {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            if let Some(inode) = target.to_string_lossy().strip_prefix("socket:[") {
                inodes.push(inode.trim_end_matches(']').to_owned());
            }
        }
    }
    let mut addresses = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // The fourth column is the state, 0A is LISTEN; the tenth is the inode.
            if fields[3] == "0A" && inodes.iter().any(|inode| inode == fields[9]) {
                addresses.push(address(fields[1]));
            }
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// `0100007F:43EC` → `127.0.0.1:17388`; an IPv6 address stays in hexadecimal.
fn address(hex: &str) -> String {
    let (host, port) = hex.split_once(':').unwrap();
    let port = u16::from_str_radix(port, 16).unwrap();
    match u32::from_str_radix(host, 16) {
        Ok(bits) if host.len() == 8 => format!("{}:{port}", std::net::Ipv4Addr::from(bits.to_le_bytes())),
        _ => format!("[{host}]:{port}"),
    }
}

fn descendants(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<i32>().ok()),
            );
        }
    }
    found
}
