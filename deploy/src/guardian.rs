//! The guardian: a small process that outlives a killed supervisor and ends what it left behind.
//!
//! The supervisor starts it first, holds the only write end of its standard input, and tells it of every process as it
//! starts and ends. When that pipe closes without a goodbye the supervisor is gone, however it went, and the guardian
//! ends the run. A parent-death signal would not do: it is lost when a child changes user, and does not reach what a
//! shell wrapper started.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{SigSet, Signal, kill};
use serde::{Deserialize, Serialize};

use crate::error::{DeployError, last_lines};
use crate::process::{Exit, Kind, ProcessInfo, carries_marker, family, is_alive, marked, pid_of, start_ticks};
use crate::volume::abandon;

const NAME: &str = "guardian";
/// How long an orphan may take to follow its polite signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the sweep goes on killing what still turns up.
const KILLING: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
/// Two scans in a row, this far apart, must find nothing: a child may sit between fork and exec, where it does not carry
/// the marker yet.
const SETTLE: Duration = Duration::from_millis(150);
/// What the guardian says when it watches.
const WATCHING: &str = "watching";

/// What the supervisor tells its guardian, one JSON value a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Message {
    /// A process was started.
    Watch(Orphan),
    /// A process has ended and was waited for.
    Forget(u32),
    /// A volume was mounted, or is about to be.
    Mounted(PathBuf),
    /// The run ended in good order.
    Done,
}

/// What is needed to end a process when its supervisor is gone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orphan {
    pid: u32,
    start_ticks: u64,
    name: String,
    signal: i32,
}

impl From<&ProcessInfo> for Orphan {
    fn from(info: &ProcessInfo) -> Self {
        Self {
            pid: info.pid,
            start_ticks: info.start_ticks,
            name: info.name.clone(),
            signal: info.orphan_signal,
        }
    }
}

/// The supervisor's side. When the last one is dropped the pipe closes, and the guardian ends the run.
#[derive(Debug)]
pub(crate) struct Guardian {
    info: ProcessInfo,
    line: Arc<Mutex<Line>>,
}

/// A way to tell the guardian that does not keep the pipe open.
#[derive(Debug, Clone)]
pub(crate) struct GuardianHandle {
    line: Weak<Mutex<Line>>,
}

#[derive(Debug)]
struct Line {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Its end was reported, or asked for.
    told: bool,
}

impl Guardian {
    /// Starts the guardian of a run and waits until it is out of reach of the terminal's Ctrl-C.
    pub(crate) fn start(program: &Path, run: &str, log: &Path) -> Result<Self, DeployError> {
        let output = std::fs::File::create(log).map_err(|e| DeployError::io(format!("create {}", log.display()), e))?;
        let mut child = Command::new(program)
            .args(["--run", run])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(output)
            .spawn()
            .map_err(|e| DeployError::io(format!("start the guardian {}", program.display()), e))?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            // A guardian that fails closes its end, so this read ends either way.
            let _ = BufReader::new(stdout).read_line(&mut said);
        }
        let info = ProcessInfo {
            name: NAME.to_owned(),
            component: NAME.to_owned(),
            kind: Kind::Tool,
            pid: child.id(),
            start_ticks: start_ticks(child.id()).unwrap_or_default(),
            started: SystemTime::now(),
            log: log.to_owned(),
            ports: Vec::new(),
            orphan_signal: Signal::SIGTERM as i32,
        };
        let stdin = child.stdin.take();
        let guardian = Self {
            info,
            line: Arc::new(Mutex::new(Line {
                child,
                stdin,
                told: false,
            })),
        };
        if said.trim_end() != WATCHING {
            return Err(DeployError::start(NAME, "ended before it watched", Some(log)));
        }
        Ok(guardian)
    }

    pub(crate) fn handle(&self) -> GuardianHandle {
        GuardianHandle {
            line: Arc::downgrade(&self.line),
        }
    }

    pub(crate) fn info(&self) -> &ProcessInfo {
        &self.info
    }

    /// How it ended, if it has and that was not told yet: nothing would end the stack after a crash of the supervisor.
    pub(crate) fn ended(&self) -> Option<Exit> {
        let mut line = self.locked();
        if line.told {
            return None;
        }
        let status = line.child.try_wait().ok().flatten()?;
        line.told = true;
        let tail = last_lines(&self.info.log, 15);
        Some(Exit {
            process: self.info.clone(),
            status: status.to_string(),
            tail,
        })
    }

    /// The run has ended in good order: lets the guardian go.
    pub(crate) async fn done(self) {
        {
            let mut line = self.locked();
            line.say(&Message::Done);
            line.stdin = None;
        }
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.locked().child.try_wait(), Ok(None)) && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn locked(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuardianHandle {
    pub(crate) fn watch(&self, process: &ProcessInfo) {
        self.say(&Message::Watch(process.into()));
    }

    pub(crate) fn mounted(&self, at: &Path) {
        self.say(&Message::Mounted(at.to_owned()));
    }

    pub(crate) fn forget(&self, pid: u32) {
        self.say(&Message::Forget(pid));
    }

    fn say(&self, message: &Message) {
        if let Some(line) = self.line.upgrade() {
            line.lock().unwrap_or_else(PoisonError::into_inner).say(message);
        }
    }
}

impl Line {
    fn say(&mut self, message: &Message) {
        let mut text = serde_json::to_string(message).expect("a message of numbers and strings is JSON");
        text.push('\n');
        if let Some(stdin) = &mut self.stdin {
            // A guardian that is gone is noticed by `exited`; the marker finds every process all the same.
            let _ = stdin.write_all(text.as_bytes());
        }
    }
}

/// The body of `rowlock-guardian`: watches until its standard input ends. Gives the process's exit status.
pub fn main(run: &str) -> u8 {
    // A session of its own: neither Ctrl-C nor the hang-up of the terminal reaches it. What else ends processes
    // politely, such as a shutdown of the machine, must not end the guardian before the supervisor.
    let _ = nix::unistd::setsid();
    let mut held = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        held.add(signal);
    }
    if let Err(error) = held.thread_block() {
        eprintln!("cannot hold back signals: {error}");
        return 3;
    }
    println!("{WATCHING}");
    let mut watched = BTreeMap::new();
    let mut mounted = Vec::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Message::Watch(orphan)) => {
                watched.insert(orphan.pid, orphan);
            }
            Ok(Message::Forget(pid)) => {
                watched.remove(&pid);
            }
            Ok(Message::Mounted(at)) => mounted.push(at),
            Ok(Message::Done) => return 0,
            // A line cut short by the supervisor's death; the marker finds what it would have named.
            Err(error) => eprintln!("not understood: {error}"),
        }
    }
    let watched: Vec<Orphan> = watched.into_values().collect();
    eprintln!(
        "the supervisor of run {run} is gone; ending {} processes",
        watched.len()
    );
    let left = sweep(run, &watched, Identity::StartTime, &mut |line| eprintln!("{line}"));
    mounted.iter().for_each(|at| abandon(at));
    if left.is_empty() {
        eprintln!("nothing is left");
        return 0;
    }
    eprintln!("still there after SIGKILL: {left:?}");
    1
}

/// How sure one must be that a recorded process is the one that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The record is of this boot and came from the supervisor itself: pid and start time name one process.
    StartTime,
    /// The record was found in a file: it must carry the run's marker as well.
    Marker,
}

/// Ends every recorded process and everything that carries the run's marker: politely first, then by SIGKILL. Gives the
/// pids that could not be ended. Blocks for [`PATIENCE`] and more.
pub(crate) fn sweep(run: &str, recorded: &[Orphan], identity: Identity, say: &mut dyn FnMut(String)) -> Vec<u32> {
    let known = |orphan: &&Orphan| {
        is_alive(orphan.pid, orphan.start_ticks) && (identity == Identity::StartTime || carries_marker(orphan.pid, run))
    };
    let mut asked = Vec::new();
    for orphan in recorded.iter().filter(known) {
        say(format!("ending {} (pid {})", orphan.name, orphan.pid));
        // A child that a fault holds would outlive its parent, deaf to everything: PostgreSQL's carry no marker to be
        // found by.
        let family = family(orphan.pid);
        asked.push((orphan.pid, orphan.start_ticks));
        send(orphan.pid, Signal::try_from(orphan.signal).unwrap_or(Signal::SIGTERM));
        family.into_iter().for_each(|pid| send(pid, Signal::SIGCONT));
    }
    for (pid, start) in marked(run) {
        if !asked.contains(&(pid, start)) {
            say(format!("ending pid {pid}, which carries the marker"));
            asked.push((pid, start));
            send(pid, Signal::SIGTERM);
            send(pid, Signal::SIGCONT);
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while asked.iter().any(|(pid, start)| is_alive(*pid, *start)) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
    let deadline = Instant::now() + KILLING;
    let mut quiet = 0;
    loop {
        asked.extend(marked(run));
        asked.retain(|(pid, start)| is_alive(*pid, *start));
        quiet = if asked.is_empty() { quiet + 1 } else { 0 };
        if quiet == 2 || Instant::now() >= deadline {
            return asked.into_iter().map(|(pid, _)| pid).collect();
        }
        for (pid, _) in &asked {
            say(format!("killing pid {pid}"));
            send(*pid, Signal::SIGKILL);
        }
        std::thread::sleep(SETTLE);
    }
}

fn send(pid: u32, signal: Signal) {
    // ESRCH: it has just ended, which is what was wanted.
    let _ = kill(pid_of(pid), signal);
}

/// The guardian's program, beside the running one.
pub(crate) fn program() -> Result<PathBuf, DeployError> {
    crate::process::sibling("rowlock-guardian")
}
