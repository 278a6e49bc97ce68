//! The second OpenID provider that services are tested with: an npm package, installed once below `target/`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Failure, Outcome};
use crate::installed;

const PACKAGE: &str = "oidc-provider";
const VERSION: &str = "9.13.3";
const NEEDS: &str = "the tests of foreign token issuers need Node 20 or newer with npm, from nodejs.org or a package \
                     nodejs of that version";

/// The folder of the package, which is installed if it is not there yet.
pub(super) async fn ensure() -> Outcome<PathBuf> {
    let inside = Path::new("node_modules").join(PACKAGE);
    installed::once(&format!("{PACKAGE}-{VERSION}"), inside, install).await
}

async fn install(folder: &Path) -> Outcome {
    eprintln!("installing the npm package {PACKAGE} {VERSION}");
    let missing = |reason: String| Failure::Missing(format!("{reason}; {NEEDS}"));
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
