//! Starting processes, and the one list of those that run.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::{Exit, Launch, MARKER, Process, ProcessInfo, inherited, start_ticks};
use crate::error::{DeployError, last_lines};
use crate::guardian::GuardianHandle;
use crate::state::{Run, StateDir};

/// Lines of a log that an unexpected end is reported with.
const TAIL: usize = 15;

/// What every process of a run shares: where logs go, the marker, and who is told.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    logs: PathBuf,
    run: String,
    registry: Arc<Registry>,
    guardian: GuardianHandle,
}

/// The processes that run, kept in step with `state.json`.
#[derive(Debug)]
pub(crate) struct Registry {
    dir: StateDir,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    run: Run,
    live: Vec<Process>,
    ended: Vec<Exit>,
    /// The run is over; a straggler must not write its file again.
    closed: bool,
}

impl Registry {
    pub(crate) fn new(dir: StateDir, run: Run) -> Result<Arc<Self>, DeployError> {
        dir.write(&run)?;
        let inner = Mutex::new(Inner {
            run,
            live: Vec::new(),
            ended: Vec::new(),
            closed: false,
        });
        Ok(Arc::new(Self { dir, inner }))
    }

    /// Changes what is known of the run, and writes it down.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Run)) -> Result<(), DeployError> {
        let mut inner = self.locked();
        change(&mut inner.run);
        self.write(&mut inner)
    }

    /// Every process that runs, oldest first.
    pub(crate) fn live(&self) -> Vec<Process> {
        self.locked().live.clone()
    }

    /// The process of this name, if it runs.
    pub(crate) fn named(&self, name: &str) -> Option<Process> {
        self.locked()
            .live
            .iter()
            .find(|process| process.info.name == name)
            .cloned()
    }

    /// The ends nobody asked for, since the last call.
    pub(crate) fn ended(&self) -> Vec<Exit> {
        std::mem::take(&mut self.locked().ended)
    }

    /// Forgets the run.
    pub(crate) fn close(&self) {
        self.locked().closed = true;
        self.dir.forget();
    }

    fn add(&self, process: Process) -> Result<(), DeployError> {
        let mut inner = self.locked();
        inner.live.push(process);
        self.write(&mut inner)
    }

    fn remove(&self, process: &Process, status: &str) {
        let mut inner = self.locked();
        inner.live.retain(|other| other.info.pid != process.info.pid);
        if !process.asked.load(Ordering::Relaxed) {
            let info = &process.info;
            let tail = last_lines(&info.log, TAIL);
            inner.ended.push(Exit {
                process: ProcessInfo::clone(info),
                status: status.to_owned(),
                tail,
            });
        }
        // If the file cannot be written now it keeps a process that is gone, whose start time matches no other.
        let _ = self.write(&mut inner);
    }

    fn write(&self, inner: &mut Inner) -> Result<(), DeployError> {
        if inner.closed {
            return Ok(());
        }
        inner.run.processes = inner
            .live
            .iter()
            .map(|process| ProcessInfo::clone(&process.info))
            .collect();
        self.dir.write(&inner.run)
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawner {
    pub(crate) fn new(logs: PathBuf, run: String, registry: Arc<Registry>, guardian: GuardianHandle) -> Self {
        Self {
            logs,
            run,
            registry,
            guardian,
        }
    }

    /// Starts a process; its output is appended to `<logs>/<name>.log`.
    pub(crate) fn spawn(&self, launch: &Launch) -> Result<Process, DeployError> {
        let log = self.open_log(&launch.name)?;
        let output = log
            .1
            .try_clone()
            .map_err(|e| DeployError::io("duplicate a log handle", e))?;
        let mut command = self.command(launch);
        command.stdin(Stdio::null()).stdout(output).stderr(log.1);
        self.start(launch, log.0, command).map(|(process, _)| process)
    }

    /// Starts a process the supervisor talks to over stdin and stdout; only its stderr goes to the log.
    pub(crate) fn spawn_piped(&self, launch: &Launch) -> Result<(Process, ChildStdin, ChildStdout), DeployError> {
        let log = self.open_log(&launch.name)?;
        let mut command = self.command(launch);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.1);
        let (process, child) = self.start(launch, log.0, command)?;
        let pipes = child.stdin.zip(child.stdout);
        let (stdin, stdout) = pipes.expect("both were asked for two lines above");
        Ok((process, stdin, stdout))
    }

    fn open_log(&self, name: &str) -> Result<(PathBuf, File), DeployError> {
        let path = self.logs.join(format!("{name}.log"));
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| DeployError::io(format!("open {}", path.display()), e))?;
        Ok((path, file))
    }

    fn command(&self, launch: &Launch) -> Command {
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .current_dir(&launch.cwd)
            .process_group(0)
            .env_clear();
        command
            .envs(inherited())
            .envs(launch.env.iter().map(|(k, v)| (k, v)))
            .env(MARKER, &self.run);
        if let Some((uid, gid)) = launch.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn start(&self, launch: &Launch, log: PathBuf, mut command: Command) -> Result<(Process, Pipes), DeployError> {
        let program = launch.program.display();
        let mut child = command
            .spawn()
            .map_err(|e| DeployError::io(format!("start {} ({program})", launch.name), e))?;
        let pid = child.id().expect("a child that was not waited for has an id");
        if let Some(group) = &launch.group
            && let Err(error) = crate::cpus::join(group, pid)
        {
            // Fails only when it has ended already.
            let _ = child.start_kill();
            return Err(DeployError::io(
                format!("put {} into {}", launch.name, group.display()),
                error,
            ));
        }
        let info = Arc::new(ProcessInfo {
            name: launch.name.clone(),
            component: launch.component.clone(),
            kind: launch.kind,
            pid,
            // A child that is already gone is a zombie until it is waited for below, and still has its times.
            start_ticks: start_ticks(pid).unwrap_or_default(),
            started: SystemTime::now(),
            log,
            ports: launch.ports.clone(),
            orphan_signal: launch.stop.orphan as i32,
        });
        self.guardian.watch(&info);
        let pipes = Pipes {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
        };
        let (tell, exit) = watch::channel(None);
        let process = Process {
            info,
            launch: Arc::new(launch.clone()),
            asked: Arc::new(AtomicBool::new(false)),
            exit,
        };
        let added = self.registry.add(process.clone());
        let (guardian, registry, watched) = (self.guardian.clone(), Arc::clone(&self.registry), process.clone());
        tokio::spawn(async move {
            // `wait` fails only when somebody else reaped the child; it is gone all the same.
            let status = child.wait().await.unwrap_or_default();
            guardian.forget(pid);
            registry.remove(&watched, &status.to_string());
            tell.send_replace(Some(status));
        });
        added.map(|()| (process, pipes))
    }
}

struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
}
