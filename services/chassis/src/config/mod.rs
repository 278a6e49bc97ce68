//! Configuration, parsed once and whole before a port is bound.
//!
//! A field `touch` of the service `tour-data` is the variable `TOUR_DATA_TOUCH` and the flag `--touch`; the flag wins.
//! A variable with the service's prefix that names no field is an error: a misspelt setting that is silently ignored
//! would turn a measurement into a different one.

mod surface;
mod values;
mod view;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches};
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::service::Action;

pub(crate) use surface::{Field, Surface};
pub use values::{Address, HumanDuration, Secret};
pub(crate) use view::{View, view};

/// What every service can be told.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct Common {
    /// Where the service listens; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    pub http_addr: SocketAddr,
    /// Where /livez, /readyz, /metrics and /config are served
    #[arg(long, default_value = "127.0.0.1:0")]
    pub admin_addr: SocketAddr,
    /// Name of this process among the replicas; SERVICE-PID if not given
    #[arg(long)]
    pub instance_id: Option<String>,
    /// Time between /readyz turning 503 and the listener closing
    #[arg(long, default_value = "0s")]
    pub drain_delay: HumanDuration,
    /// Longest time for requests and background tasks to finish once the listener is closed
    #[arg(long, default_value = "10s")]
    pub drain_timeout: HumanDuration,
    /// Most requests worked on at once; 0 sets no bound
    #[arg(long, default_value_t = 256)]
    pub max_in_flight: usize,
    /// Most requests that wait for their turn; the next one is answered with 503
    #[arg(long, default_value_t = 256)]
    pub queue_max: usize,
    /// Longest wait of a request for its turn, before it is answered with 503
    #[arg(long, default_value = "500ms")]
    pub queue_timeout: HumanDuration,
    /// How long a client may keep the service waiting for one request body, before it is answered with 408
    #[arg(long, default_value = "20s")]
    pub body_timeout: HumanDuration,
    /// What is logged, such as `info` or `info,sqlx=debug`
    #[arg(long, default_value = "info", value_parser = log_filter)]
    pub log: String,
}

impl Default for Common {
    /// The defaults of the flags.
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Defaults {
            #[command(flatten)]
            common: Common,
        }
        <Defaults as clap::Parser>::parse_from(["defaults"]).common
    }
}

impl Common {
    pub(crate) fn instance_id(&self, service: &str) -> String {
        self.instance_id
            .clone()
            .unwrap_or_else(|| format!("{service}-{}", std::process::id()))
    }
}

fn log_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// A configuration that cannot be used; names the variable.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// A variable with the service's prefix that names no field.
    #[error(
        "{variable} is not a setting of this service{}; known are: {}",
        nearest.as_ref().map(|nearest| format!(", the nearest is {nearest}")).unwrap_or_default(),
        known.join(", ")
    )]
    Unknown {
        /// The variable that was set.
        variable: String,
        /// The known variable that resembles it most, if one does.
        nearest: Option<String>,
        /// The variables of all settings.
        known: Vec<String>,
    },
    /// A value that cannot be read.
    #[error("{variable} (or {flag}): {reason}")]
    Malformed {
        /// The variable, also if the value came by the flag.
        variable: String,
        /// Its flag.
        flag: String,
        /// Why, with the value unless it may be secret.
        reason: String,
    },
    /// Fields without default that were not given.
    #[error("{} must be set", variables.join(", "))]
    Missing {
        /// Their variables.
        variables: Vec<String>,
    },
    /// A command line that is wrong in another way.
    #[error("{0}")]
    Usage(String),
}

/// What the command line asks for.
pub(crate) enum Invocation<C> {
    Serve(Common, C),
    /// `migrate` or one of the service's own actions, and the words that follow it.
    Act(Common, C, Vec<String>),
    Describe,
    /// Help or version.
    Print(String),
}

const ACTION: &str = "action";
const DESCRIBE: &str = "describe";
/// The action every service with a database has.
pub(crate) const MIGRATE: &str = "migrate";
const MIGRATION: Action = Action {
    name: MIGRATE,
    words: &[],
};

pub(crate) fn invocation<C: clap::Args>(
    service: &'static str,
    actions: &[Action],
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Invocation<C>, ConfigError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // Before anything is checked: describing must work without the settings that running needs.
    if arguments.iter().any(|argument| argument == "--describe") {
        return Ok(Invocation::Describe);
    }
    let surface = Surface::of::<C>(service);
    let command = surface
        .command
        .clone()
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            Arg::new(DESCRIBE)
                .long(DESCRIBE)
                .action(ArgAction::SetTrue)
                .help("Print what this service can be told and what it promises, as JSON"),
        )
        .arg(Arg::new(ACTION).num_args(0..).help(format!(
            "Do this and exit: {}; serve if absent",
            usages(actions).join(" | ")
        )));
    let mut words = vec![OsString::from(service)];
    words.extend(from_variables(&surface, variables)?);
    words.extend(arguments);
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Invocation::Print(error.to_string()));
        }
        Err(error) => return Err(explain(&surface, &error)),
    };
    let (common, config) = read(&surface, &matches)?;
    let command: Vec<String> = matches.get_many(ACTION).into_iter().flatten().cloned().collect();
    let Some((action, words)) = command.split_first() else {
        return Ok(Invocation::Serve(common, config));
    };
    let known = [&[MIGRATION], actions].concat();
    match known.iter().find(|known| known.name == action) {
        Some(known) if known.words.len() == words.len() => Ok(Invocation::Act(common, config, command)),
        _ => Err(ConfigError::Usage(format!(
            "{:?} is nothing that {service} does; it does: {}",
            command.join(" "),
            usages(actions).join(", ")
        ))),
    }
}

/// `move-tenant KEY SHARD`, for every action there is.
fn usages(actions: &[Action]) -> Vec<String> {
    [&[MIGRATION], actions]
        .concat()
        .iter()
        .map(|action| [&[action.name], action.words].concat().join(" "))
        .collect()
}

/// A service's configuration from variables alone, as tests and tools give them: `("TOUR_DATA_TOUCH", "none")`. The
/// environment of the process is not looked at.
pub fn parse_from<C: clap::Args>(service: &'static str, pairs: &[(&str, &str)]) -> Result<C, ConfigError> {
    let surface = Surface::of::<C>(service);
    let variables = pairs
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mut words = vec![OsString::from(service)];
    words.extend(from_variables(&surface, variables)?);
    let matches = surface
        .command
        .clone()
        .try_get_matches_from(words)
        .map_err(|error| explain(&surface, &error))?;
    read(&surface, &matches).map(|(_, config)| config)
}

fn read<C: clap::Args>(surface: &Surface, matches: &ArgMatches) -> Result<(Common, C), ConfigError> {
    let explain = |error| explain(surface, &error);
    Ok((
        Common::from_arg_matches(matches).map_err(explain)?,
        C::from_arg_matches(matches).map_err(explain)?,
    ))
}

/// The flags that the variables stand for. Put before the command line's own flags, they lose against those.
fn from_variables(
    surface: &Surface,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<OsString>, ConfigError> {
    // Sorted, so that of several errors always the same one is reported.
    let ours: BTreeMap<String, OsString> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(&surface.prefix))
        .collect();
    ours.into_iter()
        .map(|(variable, value)| {
            let Some(field) = surface.fields.iter().find(|field| field.variable == variable) else {
                return Err(ConfigError::Unknown {
                    nearest: surface.nearest(&variable),
                    known: surface.fields.iter().map(|field| field.variable.clone()).collect(),
                    variable,
                });
            };
            let mut word = OsString::from(format!("{}=", field.flag));
            word.push(value);
            Ok(word)
        })
        .collect()
}

fn explain(surface: &Surface, error: &clap::Error) -> ConfigError {
    let concerned = concerned(surface, error);
    match (error.kind(), concerned.as_slice()) {
        (ErrorKind::MissingRequiredArgument, [_, ..]) => ConfigError::Missing {
            variables: concerned.iter().map(|field| field.variable.clone()).collect(),
        },
        (ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidUtf8, [field]) => {
            ConfigError::Malformed {
                variable: field.variable.clone(),
                flag: field.flag.clone(),
                reason: reason(field, error),
            }
        }
        _ => ConfigError::Usage(error.to_string()),
    }
}

/// The fields an error is about; clap names them as `--touch <TOUCH>`.
fn concerned<'a>(surface: &'a Surface, error: &clap::Error) -> Vec<&'a Field> {
    let names = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => vec![name.as_str()],
        Some(ContextValue::Strings(names)) => names.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    names
        .into_iter()
        .filter_map(|name| {
            let flag = name.split([' ', '=']).next()?;
            surface.fields.iter().find(|field| field.flag == flag)
        })
        .collect()
}

fn reason(field: &Field, error: &clap::Error) -> String {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if !field.confidential() => format!("{value:?} is not valid: "),
        _ => String::new(),
    };
    if !field.values.is_empty() {
        return format!("{value}expected one of {}", field.values.join(", "));
    }
    match std::error::Error::source(error) {
        Some(cause) => format!("{value}{cause}"),
        None => format!("{value}a value is needed"),
    }
}
