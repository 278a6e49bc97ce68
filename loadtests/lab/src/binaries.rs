//! The project's own programs: built by cargo, found beside this one.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Failure, Outcome};

/// Builds every program of the workspace; cargo decides what is fresh, its output is shown.
///
/// No `-p`: features are then resolved as by the alias that started this program, so nothing is compiled twice.
pub(crate) async fn build() -> Outcome {
    let status = cargo()
        .args(["build", "--release", "--bins"])
        .stdin(Stdio::null())
        .status()
        .await
        .map_err(|error| Failure::Missing(format!("cargo did not start: {error}; is Rust installed?")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Missing(format!(
        "`cargo build --release --bins` failed ({status}); its output is above"
    )))
}

/// A command line of cargo in the checkout. `CARGO` is set by the alias and names the same cargo.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(deploy::root());
    command
}

/// Path of one of the built programs.
pub(crate) fn path(name: &str) -> Outcome<PathBuf> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::Missing(format!("the path of this program is unknown: {error}")))?;
    Ok(own.with_file_name(name))
}
