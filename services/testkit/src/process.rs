//! A service as a process of its own, with everything it prints.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use serde_json::Value;

/// How a process ended and what it said.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; absent when a signal ended it.
    pub code: Option<i32>,
    /// The lines of stdout that are JSON.
    pub logs: Vec<Value>,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

/// A process that is being served.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: JoinHandle<String>,
    errors: JoinHandle<String>,
    /// Where it serves.
    pub http: SocketAddr,
    /// Its admin port.
    pub admin: SocketAddr,
}

/// Runs a program with these variables and no others, to its end; for invocations that do not serve.
///
/// # Panics
/// It cannot be run.
pub fn run(program: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let output = command(program, variables, arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program} does not run: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    finished(output.status, text(&output.stdout), text(&output.stderr))
}

fn command(program: &str, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(variables.iter().copied()).args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Process {
    /// Starts a program with these variables and no others, and waits until it listens.
    ///
    /// # Panics
    /// It ends before; what it printed is shown.
    pub fn serve(program: &str, variables: &[(&str, &str)]) -> Self {
        let mut child = command(program, variables, &[])
            .spawn()
            .unwrap_or_else(|error| panic!("{program} does not start: {error}"));
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let (listening, addresses) = mpsc::channel();
        let output = std::thread::spawn(move || {
            let mut all = String::new();
            for line in stdout.lines().map_while(Result::ok) {
                if let Ok(log) = serde_json::from_str::<Value>(&line)
                    && log["message"] == "listening"
                {
                    let address = |name: &str| log[name].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
                    // Nobody waits any more if the test has failed.
                    let _ = listening.send((address("http_addr"), address("admin_addr")));
                }
                all.push_str(&line);
                all.push('\n');
            }
            all
        });
        let errors = std::thread::spawn(move || {
            let mut all = String::new();
            drop(stderr.read_to_string(&mut all));
            all
        });
        match addresses.recv() {
            Ok((Some(http), Some(admin))) => Self {
                child,
                output,
                errors,
                http,
                admin,
            },
            _ => panic!(
                "{program} does not listen: {:?}",
                child.wait().map(|status| (status, output.join(), errors.join()))
            ),
        }
    }

    /// Asks it to stop.
    ///
    /// # Panics
    /// It is gone already.
    pub fn terminate(&self) {
        let sent = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "the process was gone already");
    }

    /// Waits for its end; blocks.
    ///
    /// # Panics
    /// What it printed could not be read.
    pub fn finished(mut self) -> Finished {
        let status = self.child.wait().expect("the child is ours");
        finished(
            status,
            self.output.join().expect("reader"),
            self.errors.join().expect("reader"),
        )
    }
}

fn finished(status: ExitStatus, stdout: String, stderr: String) -> Finished {
    let logs = stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Finished {
        code: status.code(),
        logs,
        stdout,
        stderr,
    }
}
