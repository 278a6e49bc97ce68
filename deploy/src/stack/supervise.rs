//! The life of `rowlock up`: serve commands, tell what ends by itself, go down when asked.

use std::time::Duration;

use rand::distr::{Alphanumeric, SampleString as _};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::Stack;
use crate::control::{Asked, Command, serve};
use crate::error::DeployError;
use crate::ports::Port;
use crate::state::ControlAt;

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// 43 letters and digits are 256 bits.
const TOKEN_LENGTH: usize = 43;

pub(super) async fn supervise(mut stack: Stack, progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
    let mut ends = Ends::listen()?;
    let listener = stack.control.try_clone().and_then(|listener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    });
    let listener = listener.map_err(|error| DeployError::io("listen on the control port", error))?;
    let token = Alphanumeric.sample_string(&mut rand::rng(), TOKEN_LENGTH);
    let control = ControlAt {
        port: stack.ports.of(Port::Control),
        token: token.clone(),
    };
    stack.registry.update(|run| run.control = Some(control))?;
    let (sender, mut commands) = mpsc::channel(8);
    let server = tokio::spawn(serve(listener, token, sender));
    let (note, mut notes) = mpsc::unbounded_channel();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            why = ends.next() => {
                progress(why);
                break;
            }
            Some(asked) = commands.recv() => {
                let ended = tokio::select! {
                    last = obey(&mut stack, asked, &note, progress) => last.then_some("going down, as asked from another terminal"),
                    why = ends.next() => Some(why),
                };
                if let Some(why) = ended {
                    progress(why);
                    break;
                }
            }
            Some(line) = notes.recv() => progress(&line),
            _ = look.tick() => {
                for exit in stack.exited() {
                    let (name, status) = (&exit.process.name, &exit.status);
                    progress(&format!("{name} ended by itself: {status}\n{}", exit.tail));
                }
            }
        }
    }
    server.abort();
    tokio::select! {
        result = stack.down() => result,
        _ = ends.next() => {
            Err(DeployError::start("the stack", "was not given the time to end; its guardian ends the rest", None))
        }
    }
}

/// Carries out a command; true when it was the last.
async fn obey(
    stack: &mut Stack,
    asked: Asked,
    note: &mpsc::UnboundedSender<String>,
    progress: &mut dyn FnMut(&str),
) -> bool {
    match &asked.command {
        Command::Down => {
            asked.answer(&Ok(()));
            true
        }
        Command::Fault(fault) => {
            let says = fault.says();
            match stack.fault(fault).await {
                Err(error) => asked.answer(&Err(error)),
                Ok(inflicted) => {
                    progress(&format!("fault: {says}, for {:?}", fault.duration));
                    let note = note.clone();
                    // The answer comes when the fault has healed; other commands are served meanwhile.
                    tokio::spawn(async move {
                        let healed = inflicted.healed().await.map(|_| ());
                        let line = match &healed {
                            Ok(()) => format!("fault: {says} has healed"),
                            Err(error) => format!("fault: {says} has not healed: {error}"),
                        };
                        // A stack that goes down meanwhile tells no more.
                        let _ = note.send(line);
                        asked.answer(&healed);
                    });
                }
            }
            false
        }
        Command::Scale { service, replicas } => {
            let result = stack.scale(service, *replicas).await;
            match &result {
                Ok(()) => progress(&format!("{service} has {replicas} replicas now")),
                Err(error) => progress(&format!("{service} was not scaled: {error}")),
            }
            asked.answer(&result);
            false
        }
    }
}

/// The signals that end a supervisor.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Ends {
    fn listen() -> Result<Self, DeployError> {
        let listen = |kind| signal(kind).map_err(|error| DeployError::io("listen for signals", error));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted; going down",
            _ = self.terminate.recv() => "told to end; going down",
            _ = self.hang_up.recv() => "the terminal is gone; going down",
        }
    }
}
