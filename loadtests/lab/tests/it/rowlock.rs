//! Runs the program and looks at what it left behind.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest time any of the awaited conditions may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Longest time one command may take; what takes longer is killed and fails its test, and is not waited for until somebody
/// ends the whole run and nobody learns what hung.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Held by every test that loads the machine.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    // A failed test does not make the others fail.
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowlock"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    start(arguments).wait()
}

/// Runs to the end and expects an exit status; what was printed is in the message when it is another.
pub(crate) fn run_expecting(code: i32, arguments: &[&str]) -> Output {
    let output = run(arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "rowlock {}\n{}",
        arguments.join(" "),
        text(&output)
    );
    output
}

/// Runs the experiment that `toml` is to its end, on the stack `name`, and gives `results.json`; the other results are in `out`
/// below the folder.
pub(crate) fn run_experiment(folder: &Folder, toml: &str, name: &str, options: &[&str]) -> Value {
    let path = folder.path().join("experiment-of-the-test.toml");
    std::fs::write(&path, toml).expect("the folder is the test's own");
    let (path, out) = (path.to_string_lossy(), folder.path().join("out"));
    let out = out.to_string_lossy();
    let always = ["run", &path, "--json", "--name", name, "--out", &out];
    json(&run_expecting(0, &[&always[..], options].concat()))
}

/// Both outputs, for messages.
pub(crate) fn text(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Standard output as JSON.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{}", text(output)))
}

/// Starts and does not wait; the child is killed when the test fails.
pub(crate) fn start(arguments: &[&str]) -> Running {
    let mut child = command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rowlock starts");
    Running {
        called: format!("rowlock {}", arguments.join(" ")),
        printed: [
            drained(child.stdout.take().expect("it was asked for")),
            drained(child.stderr.take().expect("it was asked for")),
        ],
        child,
    }
}

/// Everything that comes out of a pipe, when it has ended. Read from the start: a child whose pipe is full waits for ever.
fn drained(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (ended, bytes) = mpsc::channel();
    std::thread::spawn(move || {
        let mut read = Vec::new();
        // What was read before an error is worth a look as well.
        let _ = pipe.read_to_end(&mut read);
        let _ = ended.send(read);
    });
    bytes
}

/// A started program.
pub(crate) struct Running {
    /// As it was called, for messages.
    called: String,
    child: Child,
    /// Its two outputs.
    printed: [mpsc::Receiver<Vec<u8>>; 2],
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.id()).expect("a process id is small");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("it is our child");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// What it printed, once it has ended.
    pub(crate) fn wait(mut self) -> Output {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.status() {
                break status;
            }
            if begun.elapsed() > LONGEST {
                let _ = self.child.kill();
                panic!(
                    "{} did not end within {} s\n{}",
                    self.called,
                    LONGEST.as_secs(),
                    text(&self.printed(ExitStatus::default()))
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        self.printed(status)
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    fn printed(&self, status: ExitStatus) -> Output {
        let [stdout, stderr] = self.printed.each_ref().map(|output| {
            let ended = output.recv_timeout(Duration::from_secs(10));
            ended.unwrap_or_else(|_| panic!("a process that {} left behind holds its outputs open", self.called))
        });
        Output { status, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its guardian ends what it had started. One that was waited for is left alone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stack in the background, which a failed test does not leave behind for the next run.
pub(crate) struct Detached {
    name: &'static str,
    /// What `up` printed.
    pub(crate) printed: Output,
    ended: bool,
}

impl Detached {
    /// Brings it up with these arguments; one that was left behind by a run that was killed is ended first.
    pub(crate) fn up(name: &'static str, arguments: &[&str]) -> Self {
        // There is none, unless something went wrong before.
        run(&["down", "--name", name]);
        let printed = run_expecting(0, &[&["up", "--name", name, "--detach"], arguments].concat());
        Self {
            name,
            printed,
            ended: false,
        }
    }

    /// Ends it.
    pub(crate) fn down(mut self) {
        run_expecting(0, &["down", "--name", self.name]);
        self.ended = true;
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if !self.ended {
            run(&["down", "--name", self.name]);
        }
    }
}

/// Waits for a condition, looking ten times a second.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "not within {} s: {what}",
            PATIENCE.as_secs()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Processes that carry the marker of the run that `pid` belongs to.
pub(crate) fn marked_like(pid: u32) -> (String, impl Fn() -> Vec<u32>) {
    let marker = marker(pid).expect("a process of the stack carries the run's marker");
    let wanted = marker.clone();
    (marker, move || {
        processes()
            .filter(|pid| self::marker(*pid).as_ref() == Some(&wanted))
            .collect()
    })
}

fn processes() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .expect("/proc is there")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn marker(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    variables
        .find(|variable| variable.starts_with("ROWLOCK_RUN="))
        .map(|variable| variable.into_owned())
}

/// A folder of the test's own, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rowlock-it-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn str(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
