//! The example service `hello` as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use serde_json::Value;

/// How a process ended and what it said.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) logs: Vec<Value>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A process that is being served.
pub(crate) struct Process {
    child: Child,
    output: JoinHandle<String>,
    errors: JoinHandle<String>,
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
}

fn command(variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    // Cargo builds examples beside the test binaries: target/PROFILE/{deps/it-…, examples/hello}.
    let test = std::env::current_exe().expect("the test binary has a path");
    let hello = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target directory")
        .join("examples/hello");
    assert!(
        hello.exists(),
        "{} is missing: run all of `cargo test -p chassis`, which builds it",
        hello.display()
    );
    let mut command = Command::new(hello);
    command.env_clear().envs(variables.iter().copied()).args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end; for invocations that do not serve.
pub(crate) fn run(variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let output = command(variables, arguments).output().expect("the example runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    finished(output.status, text(&output.stdout), text(&output.stderr))
}

/// Starts it and waits until it listens.
pub(crate) fn serve(variables: &[(&str, &str)]) -> Process {
    let mut child = command(variables, &[])
        .env("HELLO_API_KEY", "hunter2")
        .spawn()
        .expect("the example starts");
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
        Ok((Some(http), Some(admin))) => Process {
            child,
            output,
            errors,
            http,
            admin,
        },
        _ => panic!(
            "hello does not listen: {:?}",
            child.wait().map(|_| (output.join(), errors.join()))
        ),
    }
}

impl Process {
    /// Asks it to stop.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "the process was gone already");
    }

    /// Waits for its end.
    pub(crate) fn finished(mut self) -> Finished {
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
