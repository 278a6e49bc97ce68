//! Programs that run to their end: checks, initialisations, `--describe`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{Launch, inherited};
use crate::error::DeployError;

/// Runs a short-lived tool to its end, at most `bound`; gives its standard output, or an error with its output.
pub(crate) async fn run_tool(launch: &Launch, bound: Duration) -> Result<Vec<u8>, DeployError> {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(inherited());
    command.envs(launch.env.iter().map(|(k, v)| (k, v)));
    // Its end is bounded by the drop of the future, so that no tool outlives a command that gave up.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .process_group(0);
    if let Some((uid, gid)) = launch.user {
        command.uid(uid).gid(gid);
    }
    let run = timeout(bound, command.output()).await;
    let output = match run {
        Err(_) => {
            return Err(DeployError::start(
                &launch.name,
                format!("did not end within {:.0} s", bound.as_secs_f64()),
                None,
            ));
        }
        Ok(Err(error)) => return Err(DeployError::io(format!("run {}", launch.program.display()), error)),
        Ok(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let status = output.status;
    Err(DeployError::start(
        &launch.name,
        format!("ended with {status}: {}", said.trim()),
        None,
    ))
}

/// A program that is built together with the running one: beside it, or one level up when a test runs from
/// `target/release/deps`.
pub(crate) fn sibling(name: &str) -> Result<PathBuf, DeployError> {
    let own = std::env::current_exe().map_err(|e| DeployError::io("find the running program", e))?;
    let folders = own.ancestors().skip(1).take(2);
    let mut candidates = folders.map(|folder| folder.join(name));
    candidates
        .find(|path| path.is_file())
        .ok_or_else(|| DeployError::Missing {
            what: format!("the program `{name}` beside {}", own.display()),
            remedy: "build it with `cargo build --release --bins`".to_owned(),
        })
}
