//! The stack from another terminal.
//!
//! The supervisor of `rowlock up` listens on a port of its layout. A command is one JSON line that carries the token
//! from `state.json`, which only the owner of the stack can read; the answer is one line when the command has ended.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::error::DeployError;
use crate::faults::Fault;
use crate::ports::local;
use crate::process::{ProcessInfo, pid_of};
use crate::state::{ControlAt, Run, StateDir};
use crate::topology::Topology;

/// A change of replicas waits for them to be ready; a `down` for the broker.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// A command is a short line.
const LINE_MAX: u64 = 64 * 1024;
const READ_WITHIN: Duration = Duration::from_secs(5);

/// A stack that another process supervises.
#[derive(Debug)]
pub struct Remote {
    name: String,
    state: StateDir,
    run: Run,
}

/// What runs, for `ps`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// What was asked for.
    pub topology: Topology,
    /// Everything is up; false while the stack starts, changes or stops.
    pub ready: bool,
    /// It takes commands from other terminals. A stack that an experiment runs does not.
    pub controllable: bool,
    /// Process id of the supervisor.
    pub supervisor: u32,
    /// HAProxy, `127.0.0.1:…`; empty until its port is known.
    pub front: String,
    /// Superuser URL of PostgreSQL ending in `/`: append a database. Empty until it runs.
    pub postgres: String,
    /// Every process.
    pub processes: Vec<ProcessInfo>,
}

/// A command for the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    Scale { service: String, replicas: u16 },
    Fault(Fault),
    Down,
}

#[derive(Debug, Serialize, Deserialize)]
struct Request {
    token: String,
    command: Command,
}

/// An error keeps its exit status on the way to the other terminal.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    message: String,
    usage: bool,
}

type Answer = Result<(), Refusal>;

impl Remote {
    /// The stack of this name, when one is running.
    pub fn find(name: &str) -> Option<Self> {
        let state = StateDir::of(name);
        let run = state.read().filter(Run::is_supervised)?;
        Some(Self {
            name: name.to_owned(),
            state,
            run,
        })
    }

    /// What runs at this moment.
    pub async fn status(&self) -> Result<Status, DeployError> {
        let run = self
            .state
            .read()
            .filter(|run| run.is_supervised() && run.run == self.run.run);
        let run = run.ok_or_else(|| DeployError::Usage(format!("the stack `{}` has ended", self.name)))?;
        Ok(Status {
            topology: run.topology,
            ready: run.ready,
            controllable: run.control.is_some(),
            supervisor: run.supervisor,
            front: run.front,
            postgres: run.postgres,
            processes: run.processes,
        })
    }

    /// Changes the number of replicas of a service, and waits until they are ready.
    pub async fn scale(&self, service: &str, replicas: u16) -> Result<(), DeployError> {
        let command = Command::Scale {
            service: service.to_owned(),
            replicas,
        };
        self.ask(self.control("its replicas")?, command, ANSWER_WITHIN).await
    }

    /// Inflicts a fault, and waits until it has healed.
    pub async fn fault(&self, fault: &Fault) -> Result<(), DeployError> {
        fault.check()?;
        let within = ANSWER_WITHIN + fault.duration;
        self.ask(self.control("its faults")?, Command::Fault(fault.clone()), within)
            .await
    }

    fn control(&self, about: &str) -> Result<&ControlAt, DeployError> {
        self.run.control.as_ref().ok_or_else(|| {
            let Run { supervisor, .. } = self.run;
            DeployError::Usage(format!(
                "the stack `{}` is run by an experiment (pid {supervisor}), which decides about {about}",
                self.name
            ))
        })
    }

    /// Ends the stack, and waits until it is gone. A stack that an experiment drives ends with the experiment, which is
    /// told by SIGTERM.
    pub async fn down(&self) -> Result<(), DeployError> {
        match &self.run.control {
            Some(control) => self.ask(control, Command::Down, ANSWER_WITHIN).await?,
            None => {
                // ESRCH: it has just ended, which is what was wanted.
                let _ = kill(pid_of(self.run.supervisor), Signal::SIGTERM);
            }
        }
        let deadline = Instant::now() + ANSWER_WITHIN;
        while self.run.is_supervised() {
            if Instant::now() >= deadline {
                let reason = format!(
                    "(pid {}) did not end within {} s; its guardian cleans up if you kill it",
                    self.run.supervisor,
                    ANSWER_WITHIN.as_secs()
                );
                return Err(DeployError::start("the supervisor", reason, None));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The folder with the logs of its processes, `<process>.log` each.
    pub fn logs(&self) -> PathBuf {
        self.state.logs()
    }

    async fn ask(&self, control: &ControlAt, command: Command, within: Duration) -> Result<(), DeployError> {
        let request = Request {
            token: control.token.clone(),
            command,
        };
        let talk = async {
            let mut stream = TcpStream::connect(local(control.port)).await?;
            let mut line = serde_json::to_vec(&request)?;
            line.push(b'\n');
            stream.write_all(&line).await?;
            let mut answer = String::new();
            BufReader::new(stream).take(LINE_MAX).read_line(&mut answer).await?;
            Ok::<Answer, std::io::Error>(serde_json::from_str(&answer)?)
        };
        let answer = timeout(within, talk).await;
        let answer = answer.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        match answer.map_err(|e| DeployError::io(format!("talk to the supervisor of `{}`", self.name), e))? {
            Ok(()) => Ok(()),
            Err(Refusal { message, usage: true }) => Err(DeployError::Usage(message)),
            Err(Refusal { message, .. }) => Err(DeployError::start(
                "the supervisor",
                format!("refused: {message}"),
                None,
            )),
        }
    }
}

/// A command that came in, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) command: Command,
    answer: oneshot::Sender<Answer>,
}

impl Asked {
    pub(crate) fn answer(self, result: &Result<(), DeployError>) {
        let answer = match result {
            Ok(()) => Ok(()),
            Err(error) => Err(Refusal {
                message: error.to_string(),
                usage: error.exit_code() == 2,
            }),
        };
        // The other terminal may have been closed; the command is carried out all the same.
        let _ = self.answer.send(answer);
    }
}

/// Accepts commands and hands them to the one owner of the stack, in order.
pub(crate) async fn serve(listener: TcpListener, token: String, commands: mpsc::Sender<Asked>) {
    loop {
        // An error to accept is that one connection's; the next may be fine.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let (token, commands) = (token.clone(), commands.clone());
        tokio::spawn(async move {
            // A client that breaks off gets no answer, and needs none.
            let _ = serve_one(stream, &token, &commands).await;
        });
    }
}

async fn serve_one(mut stream: TcpStream, token: &str, commands: &mpsc::Sender<Asked>) -> std::io::Result<()> {
    let mut line = String::new();
    let read = async { BufReader::new(&mut stream).take(LINE_MAX).read_line(&mut line).await };
    timeout(READ_WITHIN, read).await??;
    let request: Request = serde_json::from_str(&line)?;
    let same = aws_lc_rs::constant_time::verify_slices_are_equal(request.token.as_bytes(), token.as_bytes());
    let answer = if same.is_ok() {
        let (answer, answered) = oneshot::channel();
        let gone = || Refusal {
            message: "the stack is going down".to_owned(),
            usage: false,
        };
        match commands
            .send(Asked {
                command: request.command,
                answer,
            })
            .await
        {
            Ok(()) => answered.await.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(gone()),
        }
    } else {
        Err(Refusal {
            message: "the token is not that of this run".to_owned(),
            usage: true,
        })
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line).await
}
