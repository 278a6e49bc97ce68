//! Child processes: how one is described, watched and stopped.
//!
//! Every part of the stack, server or service, is described by a [`Launch`] and started by a [`Spawner`], so that all of
//! them share the same guarantees: a clean environment that carries the run's marker, a process group of their own
//! (Ctrl-C in the terminal reaches the supervisor only), a log file, an entry with the guardian, and a bounded stop.

mod proc;
mod spawn;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use proc::{carries_marker, cpu_time, family, is_alive, marked, pid_of, start_ticks};
pub(crate) use spawn::{Registry, Spawner};
pub(crate) use tool::{run_tool, sibling};

use crate::error::DeployError;

/// The environment variable that marks every process of a run; its value is the run's UUID.
pub(crate) const MARKER: &str = "ROWLOCK_RUN";

/// Variables a child inherits from the supervisor. Everything else is left out, so that a `PGPORT` or `TOUR_DATA_TOUCH`
/// in the shell cannot change what is measured. `OTEL_*` passes as well: the telemetry switch is the user's.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "RUST_BACKTRACE"];

/// What a process is to the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A server somebody else wrote: PostgreSQL, Redis, RabbitMQ, HAProxy.
    Server,
    /// A replica of a Rowlock service.
    Service,
    /// A helper of the stack itself: a link, the guardian.
    Tool,
}

/// How a process is asked to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// The polite signal.
    pub(crate) signal: Signal,
    /// How long it may take before its process group is killed.
    pub(crate) grace: Duration,
    /// The signal the guardian sends when the supervisor is gone and nobody can wait for long.
    pub(crate) orphan: Signal,
    /// The signal that ends all of it at once, with nothing written on the way.
    pub(crate) crash: Signal,
}

impl Stop {
    /// Ends by `signal`, and is killed when it is still there after `grace`.
    pub(crate) fn by(signal: Signal, grace: Duration) -> Self {
        Self {
            signal,
            grace,
            orphan: signal,
            crash: Signal::SIGKILL,
        }
    }

    /// Ends by `signal` instead when it is the guardian that ends it.
    #[must_use]
    pub(crate) fn orphaned_by(self, orphan: Signal) -> Self {
        Self { orphan, ..self }
    }

    /// Crashes by `crash` instead of SIGKILL.
    #[must_use]
    pub(crate) fn crashed_by(self, crash: Signal) -> Self {
        Self { crash, ..self }
    }
}

/// A process to start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Unique within the stack: "tour-data-1", "postgres".
    pub(crate) name: String,
    /// What it is an instance of: "tour-data", "postgres".
    pub(crate) component: String,
    /// What it is to the stack.
    pub(crate) kind: Kind,
    /// The program; a path, never looked up.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<OsString>,
    /// Its environment besides the few inherited variables and the marker.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Its working directory; must be enterable by `user`.
    pub(crate) cwd: PathBuf,
    /// User and group id to run as, when not the supervisor's.
    pub(crate) user: Option<(u32, u32)>,
    /// Folder of the control group it runs in, when not the supervisor's.
    pub(crate) group: Option<PathBuf>,
    /// The ports it listens on, for `ps`.
    pub(crate) ports: Vec<u16>,
    /// How it ends.
    pub(crate) stop: Stop,
}

impl Launch {
    /// A short-lived program for [`run_tool`], run from the checkout.
    pub(crate) fn tool(name: impl Into<String>, program: PathBuf, args: &[&str]) -> Self {
        let name = name.into();
        Self {
            component: name.clone(),
            name,
            kind: Kind::Tool,
            program,
            args: args.iter().map(OsString::from).collect(),
            env: Vec::new(),
            cwd: crate::root(),
            user: None,
            group: None,
            ports: Vec::new(),
            stop: Stop::by(Signal::SIGTERM, Duration::ZERO),
        }
    }
}

/// A process as others see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Unique within the stack: "tour-data-1".
    pub name: String,
    /// What it is an instance of: "tour-data".
    pub component: String,
    /// What it is to the stack.
    pub kind: Kind,
    /// The root of its process tree; PostgreSQL and RabbitMQ have children.
    pub pid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/<pid>/stat`; with the pid it names one process.
    pub start_ticks: u64,
    /// When it was started.
    pub started: SystemTime,
    /// Where its output goes.
    pub log: PathBuf,
    /// The ports it listens on.
    pub ports: Vec<u16>,
    /// Number of the signal that ends it when the supervisor is gone.
    pub orphan_signal: i32,
}

/// A process that ended without being asked to.
#[derive(Debug, Clone)]
pub struct Exit {
    /// Which one.
    pub process: ProcessInfo,
    /// How it ended, in words: "exit status: 1", "signal: 9 (SIGKILL)".
    pub status: String,
    /// The last lines of its log.
    pub tail: String,
}

/// A started process; a clone is another handle on it. Dropping the handles does not end it: [`Process::stop`] and the
/// guardian do.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    info: Arc<ProcessInfo>,
    /// How it was started, to start it again.
    launch: Arc<Launch>,
    /// Set when its end was asked for, which makes it no surprise.
    asked: Arc<AtomicBool>,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Name, pid, log and ports.
    pub(crate) fn info(&self) -> &ProcessInfo {
        &self.info
    }

    /// How it was started: what a fault has ended is started again as it was.
    pub(crate) fn launch(&self) -> &Launch {
        &self.launch
    }

    /// How it ended, if it has.
    pub(crate) fn exited(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// The error for a process that ended although it was needed.
    pub(crate) fn ended_error(&self, status: ExitStatus) -> DeployError {
        DeployError::ended(&self.info.name, status, &self.info.log)
    }

    /// Repeats `probe` until it succeeds, the process ends, or `bound` has passed; then the error carries the probe's
    /// last answer and the end of the log.
    pub(crate) async fn ready<T, F, Fut>(&self, bound: Duration, mut probe: F) -> Result<T, DeployError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, String>>,
    {
        let deadline = Instant::now() + bound;
        let mut exit = self.exit.clone();
        let mut last = String::from("it was never asked");
        loop {
            tokio::select! {
                biased;
                status = exit.wait_for(Option::is_some) => {
                    let status = status.ok().and_then(|status| *status).unwrap_or_default();
                    return Err(self.ended_error(status));
                }
                answer = timeout_at(deadline, probe()) => match answer {
                    Ok(Ok(value)) => return Ok(value),
                    Ok(Err(reason)) => last = reason,
                    Err(_) => {}
                },
            }
            if Instant::now() >= deadline {
                let reason = format!("was not ready within {:.0} s: {last}", bound.as_secs_f64());
                return Err(DeployError::start(&self.info.name, reason, Some(&self.info.log)));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the process has ended, at most `bound`; true when it has.
    pub(crate) async fn wait(&self, bound: Duration) -> bool {
        let mut exit = self.exit.clone();
        matches!(timeout(bound, exit.wait_for(Option::is_some)).await, Ok(Ok(_)))
    }

    /// Sends the polite signal and returns at once; [`Process::stop`] waits.
    pub(crate) fn signal_stop(&self) {
        self.expect_end();
        self.signal(self.launch.stop.signal);
    }

    /// From now on its end is no surprise.
    pub(crate) fn expect_end(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Its end would be one again.
    pub(crate) fn end_is_unexpected(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Ends it without giving it the time to say goodbye, as a crash would, and waits until it is gone.
    pub(crate) async fn crash(&self) -> Result<(), DeployError> {
        self.expect_end();
        self.signal(self.launch.stop.crash);
        if self.launch.stop.crash != Signal::SIGKILL && self.wait(CRASHED_WITHIN).await {
            return Ok(());
        }
        self.end_group().await
    }

    /// Holds it and its children where they are; [`Process::resume`] lets them go on.
    pub(crate) fn pause(&self) {
        let mut held = Vec::new();
        // Its root first, which then makes no more children; a child may have made one meanwhile.
        loop {
            let found: Vec<u32> = family(self.info.pid);
            let fresh: Vec<u32> = found.into_iter().filter(|pid| !held.contains(pid)).collect();
            if fresh.is_empty() {
                return;
            }
            for pid in fresh {
                // ESRCH: it has just ended, and need not be held.
                let _ = kill(pid_of(pid), Signal::SIGSTOP);
                held.push(pid);
            }
        }
    }

    /// Lets it and its children go on.
    pub(crate) fn resume(&self) {
        for pid in family(self.info.pid) {
            let _ = kill(pid_of(pid), Signal::SIGCONT);
        }
    }

    /// Ends the process: its signal, its grace, then SIGKILL for its whole group.
    pub(crate) async fn stop(&self) -> Result<(), DeployError> {
        self.signal_stop();
        if !self.wait(self.launch.stop.grace).await {
            return self.end_group().await;
        }
        // Whatever the root process left behind in its group has nobody to serve any more.
        let _ = killpg(self.pid(), Signal::SIGKILL);
        Ok(())
    }

    /// SIGKILL for all of its process group.
    async fn end_group(&self) -> Result<(), DeployError> {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        if self.wait(KILLED_WITHIN).await {
            return Ok(());
        }
        let reason = format!("(pid {}) is still there after SIGKILL", self.info.pid);
        Err(DeployError::start(&self.info.name, reason, None))
    }

    fn signal(&self, signal: Signal) {
        if self.exited().is_none() {
            // ESRCH: it ended this very moment, which is what was wanted.
            let _ = kill(self.pid(), signal);
        }
    }

    fn pid(&self) -> Pid {
        pid_of(self.info.pid)
    }
}

const POLL: Duration = Duration::from_millis(20);
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// PostgreSQL's own bound on its children in an immediate shutdown is 5 s.
const CRASHED_WITHIN: Duration = Duration::from_secs(7);

fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| INHERITED.contains(&name) || name.starts_with("OTEL_"))
    })
}
