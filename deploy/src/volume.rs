//! A small volume of its own for a server's data, so that it can run out of space without anybody else.
//!
//! It is a `tmpfs` of a fixed size: what lies on it is gone when the stack goes down. Mounting takes root, as everywhere.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::DeployError;
use crate::process::{Launch, run_tool};

const MOUNT_WITHIN: Duration = Duration::from_secs(10);
/// What fills it.
const BALLAST: &str = "ballast";
/// The file is written in pieces of this size, then of a page, so that nothing is left.
const PIECES: [usize; 2] = [1 << 20, 4096];

/// A volume, mounted or not.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) at: PathBuf,
    pub(crate) bytes: u64,
    /// Whom it belongs to, when that is not us.
    pub(crate) user: Option<(u32, u32)>,
}

impl Volume {
    /// Mounts it, empty, unless it is mounted.
    ///
    /// # Errors
    /// Mounting is not permitted: it takes root, in a container the capability `SYS_ADMIN`.
    pub(crate) async fn mount(&self) -> Result<(), DeployError> {
        if is_mounted(&self.at) {
            return Ok(());
        }
        let owner = self
            .user
            .map_or_else(String::new, |(uid, gid)| format!(",uid={uid},gid={gid}"));
        let options = format!("size={},mode=0700{owner}", self.bytes);
        let at = self.at.display().to_string();
        let arguments = ["-t", "tmpfs", "-o", &options, "rowlock", &at];
        let tool = Launch::tool("mount", "/bin/mount".into(), &arguments);
        let mounted = run_tool(&tool, MOUNT_WITHIN).await;
        mounted.map(|_| ()).map_err(|error| DeployError::Missing {
            what: format!("the right to mount a volume of {} bytes at {at} ({error})", self.bytes),
            remedy: "run as root, in a container with the capability SYS_ADMIN, or leave --volume out".to_owned(),
        })
    }

    /// Fills it until nothing more can be written.
    pub(crate) fn fill(&self) -> Result<(), DeployError> {
        let path = self.at.join(BALLAST);
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&path)?;
            for piece in PIECES {
                let zeros = vec![0; piece];
                loop {
                    match file.write(&zeros) {
                        Ok(written) if written > 0 => {}
                        Ok(_) => break,
                        Err(error) if error.kind() == ErrorKind::StorageFull => break,
                        Err(error) => return Err(error),
                    }
                }
            }
            Ok(())
        };
        write().map_err(|error| DeployError::io(format!("fill {}", self.at.display()), error))
    }

    /// Gives the space back.
    pub(crate) fn free(&self) -> Result<(), DeployError> {
        let path = self.at.join(BALLAST);
        std::fs::remove_file(&path).map_err(|error| DeployError::io(format!("remove {}", path.display()), error))
    }

    /// Takes it away with all that is on it.
    pub(crate) async fn unmount(&self) -> Result<(), DeployError> {
        if !is_mounted(&self.at) {
            return Ok(());
        }
        let tool = Launch::tool(
            "umount",
            "/bin/umount".into(),
            &["--lazy", &self.at.display().to_string()],
        );
        run_tool(&tool, MOUNT_WITHIN).await.map(|_| ())
    }
}

/// Whether something is mounted at this very folder.
fn is_mounted(at: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    // The kernel writes blanks as `\040`.
    let wanted = at.display().to_string().replace(' ', "\\040");
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(&wanted))
}

/// Takes away what a killed run has left mounted, for who cannot wait: the guardian.
pub(crate) fn abandon(at: &Path) {
    if is_mounted(at) {
        // Refused or not: the next start finds it, and takes it as its own.
        let _ = std::process::Command::new("/bin/umount").arg("--lazy").arg(at).status();
    }
}
