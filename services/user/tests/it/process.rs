//! The issuer as a process of its own, with everything it prints.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

use serde_json::Value;

pub(crate) struct Process {
    child: Child,
    output: JoinHandle<String>,
    errors: JoinHandle<String>,
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Process {
    /// Waits until it listens.
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_user"));
        command.env_clear().envs(variables.iter().copied());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let stdout = BufReader::new(child.stdout.take().expect("is piped"));
        let mut stderr = child.stderr.take().expect("is piped");
        let (listening, addresses) = mpsc::channel();
        let output = std::thread::spawn(move || {
            let mut all = String::new();
            for line in stdout.lines().map_while(Result::ok) {
                let log: Value = serde_json::from_str(&line).unwrap_or_default();
                if log["message"] == "listening" {
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
            _ => panic!("it does not listen: {:?} {:?}", output.join(), errors.join()),
        }
    }

    /// Asks it to stop, waits for that, and gives all it has printed.
    pub(crate) fn stop(mut self) -> String {
        let sent = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "the process was gone already");
        assert!(self.child.wait().expect("is ours").success());
        let [output, errors] = [self.output, self.errors].map(|reader| reader.join().expect("did not panic"));
        output + &errors
    }
}
