//! The second OpenID provider that services are tested with: an npm package, installed once below `target/`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Failure, Outcome};

const PACKAGE: &str = "oidc-provider";
const VERSION: &str = "9.13.3";
const NEEDS: &str = "the tests of foreign token issuers need Node 20 or newer with npm, from nodejs.org or a package \
                     nodejs of that version";

/// The folder of the package, which is installed if it is not there yet.
pub(super) async fn ensure() -> Outcome<PathBuf> {
    let folder = deploy::root().join(format!("target/{PACKAGE}-{VERSION}"));
    let package = folder.join("node_modules").join(PACKAGE);
    if package.is_dir() {
        return Ok(package);
    }
    // Moved into place when it is whole, so that what was cut off half-way is not taken for an installation.
    let fresh = folder.with_file_name(format!("{PACKAGE}-{VERSION}.new-{}", std::process::id()));
    let installed = install(&fresh).await;
    let moved = installed.and_then(|()| match std::fs::rename(&fresh, &folder) {
        Err(error) if !package.is_dir() => Err(Failure::Missing(format!(
            "{} cannot be moved to {}: {error}",
            fresh.display(),
            folder.display()
        ))),
        _ => Ok(package),
    });
    // What is left over: of an installation that failed, or that another run has overtaken.
    match std::fs::remove_dir_all(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => eprintln!("{} stays behind: {error}", fresh.display()),
        _ => {}
    }
    moved
}

async fn install(folder: &Path) -> Outcome {
    eprintln!("installing the npm package {PACKAGE} {VERSION}");
    let missing = |reason: String| Failure::Missing(format!("{reason}; {NEEDS}"));
    std::fs::create_dir_all(folder).map_err(|error| missing(format!("{}: {error}", folder.display())))?;
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--ignore-scripts",
            "--prefix",
        ])
        .arg(folder)
        .arg(format!("{PACKAGE}@{VERSION}"))
        .stdin(Stdio::null())
        .status()
        .await
        .map_err(|error| missing(format!("npm did not start: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(missing(format!(
            "npm did not install {PACKAGE} ({status}); its output is above"
        )))
    }
}
