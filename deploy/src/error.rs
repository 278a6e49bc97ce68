//! What can go wrong while a stack comes up, changes or goes down, worded for the person in front of the terminal.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Lines of a log that an error shows.
const TAIL: usize = 15;

/// Why the stack could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeployError {
    /// The request itself is wrong: an unknown service, a port base out of range, an unknown preset.
    #[error("{0}")]
    Usage(String),
    /// A program or file that must be there is not.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The program or file, as the reader would look for it.
        what: String,
        /// What to type to get it.
        remedy: String,
    },
    /// A port of the stack's own layout is already listened on by somebody else.
    #[error(
        "port {port} ({purpose}) is taken by another process; stop it, or move the whole stack with --port-base (for example --port-base {suggestion})"
    )]
    PortTaken {
        /// The port on 127.0.0.1.
        port: u16,
        /// What the stack wanted it for.
        purpose: String,
        /// A base whose layout does not overlap the one that failed.
        suggestion: u16,
    },
    /// A stack of this name is already up.
    #[error(
        "the stack `{name}` is already running (supervisor pid {pid}); stop it with `cargo rowlock down`, or choose another name"
    )]
    Running {
        /// The name of the stack.
        name: String,
        /// The process id of its supervisor.
        pid: u32,
    },
    /// A process ended, failed, or was not ready within its bound.
    #[error("{name} {reason}{}", tail_of(log.as_deref(), tail))]
    Start {
        /// The process or step.
        name: String,
        /// What happened, with the bound if one ran out.
        reason: String,
        /// How the process ended, if it did.
        status: Option<ExitStatus>,
        /// Where its output is.
        log: Option<PathBuf>,
        /// The last lines of that output.
        tail: String,
    },
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// The action and its object.
        what: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A server of the stack answered with an error.
    #[error("{what}: {source:#}")]
    Server {
        /// What was asked of which server.
        what: String,
        /// The cause.
        source: anyhow::Error,
    },
}

impl DeployError {
    /// The exit status of a command that ends with this error: 2 for wrong usage, 3 for what is missing or did not
    /// start.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 3,
        }
    }

    /// An operating system error with the action it interrupted ("open /x/y").
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }

    /// An error a server gave, with what was asked of it.
    pub fn server(what: impl Into<String>, source: impl Into<anyhow::Error>) -> Self {
        Self::Server {
            what: what.into(),
            source: source.into(),
        }
    }

    /// A process or step that did not come up, with the last lines of its log.
    pub fn start(name: impl Into<String>, reason: impl Into<String>, log: Option<&Path>) -> Self {
        Self::Start {
            name: name.into(),
            reason: reason.into(),
            status: None,
            log: log.map(Path::to_owned),
            tail: log.map(|path| last_lines(path, TAIL)).unwrap_or_default(),
        }
    }

    /// A process that ended although it was needed.
    pub(crate) fn ended(name: &str, status: ExitStatus, log: &Path) -> Self {
        Self::Start {
            name: name.to_owned(),
            reason: format!("ended with {status}"),
            status: Some(status),
            log: Some(log.to_owned()),
            tail: last_lines(log, TAIL),
        }
    }

    /// Whether a process ended because it cannot do what it was configured to: exit status 2, as for wrong usage. Trying
    /// again changes nothing.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Start { status: Some(status), .. } if status.code() == Some(2))
    }
}

/// The last `count` lines of a log, from its last 16 KiB; empty when it cannot be read.
pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    const WINDOW: u64 = 16 * 1024;
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)))?;
        let mut bytes = Vec::new();
        file.take(WINDOW).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn tail_of(log: Option<&Path>, tail: &str) -> String {
    match log {
        None => String::new(),
        Some(path) if tail.is_empty() => format!("; its log {} is empty", path.display()),
        Some(path) => {
            let indented: String = tail.lines().map(|line| format!("\n    {line}")).collect();
            format!("; last lines of {}:{indented}", path.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_process_that_ends_with_2_refuses_and_any_other_fails() {
        let log = Path::new("/nowhere");
        for (wait_status, refuses) in [(2 << 8, true), (1 << 8, false), (2, false)] {
            let status = ExitStatus::from_raw(wait_status);
            assert_eq!(
                DeployError::ended("tour-data", status, log).is_refusal(),
                refuses,
                "{status}"
            );
        }
        assert!(!DeployError::start("tour-data", "was not ready within 30 s", None).is_refusal());
    }

    #[test]
    fn a_process_that_did_not_start_shows_the_end_of_its_log() {
        let path = std::env::temp_dir().join(format!("rowlock-error-{}.log", std::process::id()));
        let text: String = (0..40).map(|line| format!("line {line}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let error = DeployError::start("redis", "ended with exit status 1", Some(&path));
        std::fs::remove_file(&path).unwrap();
        let text = error.to_string();
        assert!(
            text.starts_with("redis ended with exit status 1; last lines of "),
            "{text}"
        );
        assert!(text.contains("\n    line 39") && !text.contains("line 24\n"), "{text}");
        assert_eq!(error.exit_code(), 3);
    }
}
