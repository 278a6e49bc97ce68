//! Why a command ended without success, and the exit status that says so.

use std::fmt;

use deploy::DeployError;

/// What every command ends with.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The reason a command failed; each kind has an exit status of its own.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A gate or a claim marked `must` did not hold, or something broke on the way: 1.
    Gate(String),
    /// Wrong usage or configuration: 2.
    Usage(String),
    /// Something needed is missing or did not start: 3.
    Missing(String),
}

impl Failure {
    /// The exit status of the command line.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Gate(_) => 1,
            Self::Usage(_) => 2,
            Self::Missing(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(text) | Self::Usage(text) | Self::Missing(text) => f.write_str(text),
        }
    }
}

/// So that one keeps its exit status on its way through `anyhow`.
impl std::error::Error for Failure {}

impl From<DeployError> for Failure {
    fn from(error: DeployError) -> Self {
        let text = error.to_string();
        match error.exit_code() {
            2 => Self::Usage(text),
            3 => Self::Missing(text),
            _ => Self::Gate(text),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(failure) => return failure,
            Err(error) => error,
        };
        match error.downcast::<DeployError>() {
            Ok(error) => error.into(),
            Err(error) => Self::Gate(format!("{error:#}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_start_keeps_its_exit_status_through_an_error_chain() {
        let chained = anyhow::Error::new(DeployError::Usage("no such preset".to_owned())).context("arm tuned");
        assert_eq!(Failure::from(chained).exit_code(), 2);
        let own = anyhow::Error::new(Failure::Missing("no k6".to_owned())).context("load.vs_k6_p95");
        assert_eq!(Failure::from(own).exit_code(), 3);
        assert_eq!(Failure::from(anyhow::anyhow!("broken")).exit_code(), 1);
    }
}
