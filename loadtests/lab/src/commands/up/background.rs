//! The two halves of `up --detach`: the one in the terminal that waits, and the one that stays.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use deploy::control::Remote;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use crate::failure::{Failure, Outcome};

const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Last line that is printed before the stack takes commands.
pub(super) const READY: &str = "the stack is ready";

/// Leaves the terminal's session, so that closing the terminal does not end the stack.
pub(super) fn become_session_leader() -> Outcome {
    nix::unistd::setsid()
        .map(drop)
        .map_err(|error| Failure::Missing(format!("the background process got no session of its own: {error}")))
}

/// Starts this program again in the background with the same options, and waits until its stack is ready.
pub(super) async fn start(name: &str) -> Outcome {
    let folder = deploy::root().join(".rowlock").join(name);
    let path = folder.join("up.log");
    let log = create(&folder, &path)
        .map_err(|error| Failure::Missing(format!("cannot write {}: {error}", path.display())))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::Missing(format!("the path of this program is unknown: {error}")))?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1).filter(|argument| argument != "--detach"))
        .arg("--background")
        .stdin(Stdio::null())
        .stdout(log.1)
        .stderr(log.0)
        .spawn()
        .map_err(|error| Failure::Missing(format!("the background process did not start: {error}")))?;
    let pid = child.id();
    loop {
        tokio::select! {
            status = child.wait() => return Err(ended(status, &path)),
            _ = tokio::signal::ctrl_c() => {
                if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
                    // It ends what it has started before it exits; the next turn of the loop waits for that.
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
            }
            () = tokio::time::sleep(LOOK_AGAIN) => {
                let printed = std::fs::read_to_string(&path).unwrap_or_default();
                if printed.contains(READY) && ready(name, pid).await {
                    print!("{printed}");
                    println!("running in the background (pid {}); `cargo rowlock down --name {name}` ends it",
                        pid.unwrap_or_default());
                    return Ok(());
                }
            }
        }
    }
}

/// The stack of that name is up and takes commands, and it is the one that was started here.
async fn ready(name: &str, pid: Option<u32>) -> bool {
    match Remote::find(name) {
        Some(remote) => remote
            .status()
            .await
            .is_ok_and(|status| status.ready && status.controllable && Some(status.supervisor) == pid),
        None => false,
    }
}

/// The log, twice: for standard output and standard error. It will hold credentials of the local servers.
fn create(folder: &Path, path: &Path) -> std::io::Result<(File, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let log = File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    let second = log.try_clone()?;
    Ok((second, log))
}

fn ended(status: std::io::Result<ExitStatus>, log: &Path) -> Failure {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let text = format!("{}\n(log: {})", text.trim(), log.display());
    match status.ok().and_then(|status| status.code()) {
        Some(2) => Failure::Usage(text),
        Some(1) => Failure::Gate(text),
        _ => Failure::Missing(text),
    }
}
