//! The life of a service process: what a service has to say, and everything around it.

use std::ffi::OsString;
use std::future::Future;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anyhow::anyhow;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{self, Common, ConfigError, Invocation};
use crate::describe;
use crate::lifecycle;
pub use crate::lifecycle::{Background, Drain, Running};
use crate::readiness::Dependency;
use crate::telemetry::Telemetry;

/// A service: its name, its configuration and how it is built.
pub trait Service: Sized + Send + Sync + 'static {
    /// Name in kebab case, such as `tour-data`; the prefix of its variables is this in upper snake case.
    const NAME: &'static str;
    /// Every field takes a value and gets the flag `--field-name` and the variable `PREFIX_FIELD_NAME`. Topics are
    /// structs of their own, flattened for clap and serde alike.
    type Config: clap::Args + serde::Serialize + Clone + Send + Sync + 'static;

    /// Keys of its own that the service adds to `--describe`.
    fn describe() -> serde_json::Value {
        serde_json::json!({})
    }

    /// Connects and builds. Must not wait for a dependency that is away: readiness says so instead.
    fn build(config: Self::Config, cx: Chassis) -> impl Future<Output = Result<App, StartError>> + Send;

    /// Whether requests to this path are what other requests wait for, such as a service's questions to the issuer of
    /// tokens. They have places of their own, as many as the others: those that hold all places would otherwise wait in
    /// vain for one that is refused for want of a place.
    fn waited_for(path: &str) -> bool {
        let _ = path;
        false
    }

    /// `SERVICE migrate`: brings the service's database to the schema this binary needs.
    fn migrate(config: Self::Config) -> impl Future<Output = Result<(), StartError>> + Send {
        drop(config);
        async { Err(StartError::Config(format!("{} has no database to migrate", Self::NAME))) }
    }

    /// What the service's program can be told to do beside `migrate`.
    const ACTIONS: &'static [Action] = &[];

    /// `SERVICE ACTION WORD…`: does this one thing and exits. Called with one of [`ACTIONS`](Service::ACTIONS) only, and
    /// with as many words as it takes.
    fn act(
        action: &str,
        words: &[String],
        config: Self::Config,
    ) -> impl Future<Output = Result<(), StartError>> + Send {
        drop(config);
        let unknown = StartError::Config(format!("{} has no action {action} {}", Self::NAME, words.join(" ")));
        async { Err(unknown) }
    }
}

/// Something that a service's program does and exits.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// In kebab case, such as `rotate-key`.
    pub name: &'static str,
    /// What the words mean that follow it, such as `KEY`; all of them are needed.
    pub words: &'static [&'static str],
}

/// What the chassis gives a service that is being built.
#[derive(Clone, Debug)]
pub struct Chassis {
    /// Names this process among the replicas; also the `application_name` of its database sessions.
    pub instance_id: String,
    /// The service's name.
    pub service: &'static str,
    /// Tells background tasks to finish.
    pub drain: Drain,
}

/// What a service hands to the chassis to run.
pub struct App {
    /// Served on the service's own port, under the chassis's HTTP layer.
    pub router: axum::Router,
    /// Decide `/readyz`.
    pub dependencies: Vec<Dependency>,
    /// Run beside the router and are drained after the last request.
    pub background: Vec<Background>,
}

/// Why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is at fault: exit status 2.
    #[error("{0}")]
    Config(String),
    /// Something the service needs in order to start is missing: exit status 3.
    #[error("{0:#}")]
    Unavailable(anyhow::Error),
}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

impl StartError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Unavailable(_) => 3,
        }
    }
}

/// The whole life of the process: arguments, `--describe`, `migrate`, telemetry, build, serve, drain, flush. The body
/// of every service's `fn main`.
///
/// Exit status: 0 after an orderly stop, 1 when a background task crashed or the drain was cut short, 2 for wrong
/// configuration, 3 when something needed is missing.
pub fn main<S: Service>() -> ExitCode {
    ExitCode::from(run::<S>(std::env::vars_os(), std::env::args_os().skip(1)))
}

fn run<S: Service>(
    variables: impl Iterator<Item = (OsString, OsString)>,
    arguments: impl Iterator<Item = OsString>,
) -> u8 {
    let (common, config, action) = match config::invocation::<S::Config>(S::NAME, S::ACTIONS, variables, arguments) {
        Ok(Invocation::Serve(common, config)) => (common, config, None),
        Ok(Invocation::Act(common, config, action)) => (common, config, Some(action)),
        Ok(Invocation::Describe) => {
            return print(&format!("{:#}\n", describe::describe::<S>()));
        }
        Ok(Invocation::Print(text)) => {
            return print(&text);
        }
        Err(error) => {
            eprintln!("{}: {error}", S::NAME);
            return StartError::from(error).exit_code();
        }
    };
    // Two workers: a replica stands for a small container, and every worker costs memory for its allocator arena.
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{}: cannot start the runtime: {error}", S::NAME);
            return 3;
        }
    };
    // Declared after the runtime and so dropped before it: the exporters need the runtime for their last flush, which
    // also happens when something below panics.
    let _telemetry = match runtime.block_on(async { Telemetry::install(S::NAME, &common) }) {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("{}: {error}", S::NAME);
            return error.exit_code();
        }
    };
    runtime.block_on(async {
        let Some(command) = action else {
            return serve::<S>(common, config).await;
        };
        let (action, words) = command.split_first().expect("an action is a word");
        let done = match action.as_str() {
            config::MIGRATE => S::migrate(config).await,
            own => S::act(own, words, config).await,
        };
        match done {
            Ok(()) => {
                tracing::info!(action, "done");
                0
            }
            Err(error) => not_started(&error),
        }
    })
}

/// A reader that closes the pipe early (`--help | head`) has seen what it wanted.
fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => 1,
        _ => 0,
    }
}

async fn serve<S: Service>(common: Common, config: S::Config) -> u8 {
    let mut stop = match Stop::listen() {
        Ok(stop) => stop,
        Err(error) => return not_started(&StartError::Unavailable(error)),
    };
    let mut running = tokio::select! {
        started = start::<S>(common, config) => match started {
            Ok(running) => running,
            Err(error) => return not_started(&error),
        },
        () = stop.signalled() => return 0,
    };
    let crash = tokio::select! {
        error = running.crashed() => Some(error),
        () = stop.signalled() => None,
    };
    if let Some(error) = &crash {
        tracing::error!(error = format!("{error:#}"), "stopping after a background task ended");
    }
    let drained = tokio::select! {
        drained = running.shutdown() => drained,
        () = stop.signalled() => Err(anyhow!("a second signal cut the drain short")),
    };
    match drained {
        Ok(()) if crash.is_none() => {
            tracing::info!("stopped");
            0
        }
        Ok(()) => 1,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "stopped before everything was drained");
            1
        }
    }
}

fn not_started(error: &StartError) -> u8 {
    tracing::error!(error = %error, "did not start");
    error.exit_code()
}

/// Builds, binds and serves in this process; port 0 takes a free one. Telemetry is the caller's, except for the meter
/// behind `/metrics`.
pub async fn start<S: Service>(common: Common, config: S::Config) -> Result<Running, StartError> {
    lifecycle::start::<S>(common, config).await
}

/// The signals that ask a process to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
