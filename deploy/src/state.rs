//! The folder of a stack, `.rowlock/<name>`, and what it remembers of a run: enough for another terminal to find the
//! stack, and for the next `up` to end what a killed run left behind.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::DeployError;
use crate::guardian::{Identity, Orphan, sweep};
use crate::process::{ProcessInfo, is_alive, start_ticks};
use crate::topology::Topology;

/// Version of the file's format; a file of another version is not read.
const VERSION: u32 = 1;

/// One run of a stack, as written to `state.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    version: u32,
    /// UUID of the run, in the environment of all its processes.
    pub(crate) run: String,
    /// Boot the pids belong to.
    boot: String,
    pub(crate) supervisor: u32,
    supervisor_start: u64,
    pub(crate) topology: Topology,
    /// Everything is up; false while it starts, changes or stops.
    pub(crate) ready: bool,
    /// Where other terminals ask for changes; `None` while the run is driven by an experiment.
    pub(crate) control: Option<ControlAt>,
    /// Base of the port layout.
    pub(crate) port_base: u16,
    /// HAProxy, `127.0.0.1:…`.
    pub(crate) front: String,
    /// Superuser URL of PostgreSQL ending in `/`; empty until it runs.
    pub(crate) postgres: String,
    pub(crate) processes: Vec<ProcessInfo>,
}

/// The control endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ControlAt {
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Run {
    pub(crate) fn new(run: String, topology: Topology) -> Self {
        let supervisor = std::process::id();
        Self {
            version: VERSION,
            run,
            boot: boot(),
            supervisor,
            supervisor_start: start_ticks(supervisor).unwrap_or_default(),
            topology,
            ready: false,
            control: None,
            port_base: 0,
            front: String::new(),
            postgres: String::new(),
            processes: Vec::new(),
        }
    }

    /// True while the process that wrote this still runs.
    pub(crate) fn is_supervised(&self) -> bool {
        self.boot == boot() && is_alive(self.supervisor, self.supervisor_start)
    }
}

/// The folder of one stack.
#[derive(Debug, Clone)]
pub(crate) struct StateDir(PathBuf);

impl StateDir {
    pub(crate) fn of(name: &str) -> Self {
        Self(crate::root().join(".rowlock").join(name))
    }

    /// Makes the folder, for its owner only.
    pub(crate) fn create(&self) -> Result<(), DeployError> {
        for path in [self.path(), &self.logs(), &self.services()] {
            private_dir(path)?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// One file a process.
    pub(crate) fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// Files the services read.
    pub(crate) fn services(&self) -> PathBuf {
        self.0.join("services")
    }

    fn file(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// Removes the logs of the run before: a run's logs tell of that run alone.
    pub(crate) fn empty_logs(&self) -> Result<(), DeployError> {
        let remove = || {
            for entry in std::fs::read_dir(self.logs())? {
                std::fs::remove_file(entry?.path())?;
            }
            Ok(())
        };
        remove().map_err(|e| DeployError::io(format!("empty {}", self.logs().display()), e))
    }

    /// Takes the lock that the supervisor of a stack holds as long as it lives. The kernel drops it with the process, so
    /// it cannot be stale.
    pub(crate) fn lock(&self, name: &str) -> Result<File, DeployError> {
        let path = self.0.join("lock");
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path);
        let file = opened.map_err(|e| DeployError::io(format!("open {}", path.display()), e))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let pid = self.read().map(|run| run.supervisor).unwrap_or_default();
                Err(DeployError::Running {
                    name: name.to_owned(),
                    pid,
                })
            }
            Err(TryLockError::Error(error)) => Err(DeployError::io(format!("lock {}", path.display()), error)),
        }
    }

    /// What is known of the latest run; `None` when there was none, or another version of Rowlock wrote it.
    pub(crate) fn read(&self) -> Option<Run> {
        let run: Run = serde_json::from_slice(&std::fs::read(self.file()).ok()?).ok()?;
        (run.version == VERSION).then_some(run)
    }

    pub(crate) fn write(&self, run: &Run) -> Result<(), DeployError> {
        let text = serde_json::to_vec_pretty(run).expect("the state of a run is JSON");
        replace(&self.file(), &text)
    }

    pub(crate) fn forget(&self) {
        // Absent already, or unwritable: the next `up` finds nothing alive that matches it.
        let _ = std::fs::remove_file(self.file());
    }

    /// Ends what a killed run left behind. Only a process with the recorded pid, start time and marker is touched, and
    /// what carries the marker of that run.
    pub(crate) async fn clean_up(&self, say: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
        let Some(run) = self.read() else { return Ok(()) };
        if run.boot != boot() {
            // No process survives a reboot, and its pids now belong to others.
            self.forget();
            return Ok(());
        }
        let orphans: Vec<Orphan> = run.processes.iter().map(Orphan::from).collect();
        let work = tokio::task::spawn_blocking(move || {
            let mut lines = Vec::new();
            let left = sweep(&run.run, &orphans, Identity::Marker, &mut |line| lines.push(line));
            (lines, left)
        });
        let (lines, left) = work
            .await
            .map_err(|error| DeployError::server("clean up after a killed run", error))?;
        for line in lines {
            say(&format!("left over from a killed run: {line}"));
        }
        if left.is_empty() {
            self.forget();
            return Ok(());
        }
        let reason = format!("could not end the processes {left:?}; end them by hand, then try again");
        Err(DeployError::start("the clean-up after a killed run", reason, None))
    }
}

/// Replaces a file at once: a reader sees the old content or the new, never a part.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), DeployError> {
    let temporary = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(content)?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|e| DeployError::io(format!("write {}", path.display()), e))
}

/// A folder that its owner alone can enter.
pub(crate) fn private_dir(path: &Path) -> Result<(), DeployError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .and_then(|()| std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)))
        .map_err(|e| DeployError::io(format!("make the folder {}", path.display()), e))
}

fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
