//! Foreign packages that are installed once, below `target/`, and used from there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

/// The path `inside` the folder `target/NAME`; where it does not exist, `install` fills the folder that it is told.
pub(crate) async fn once(
    name: &str,
    inside: impl AsRef<Path>,
    install: impl AsyncFnOnce(&Path) -> Outcome,
) -> Outcome<PathBuf> {
    let folder = deploy::root().join("target").join(name);
    let wanted = folder.join(inside);
    if wanted.exists() {
        return Ok(wanted);
    }
    // Moved into place when it is whole, so that what was cut off half-way is not taken for an installation.
    let fresh = folder.with_file_name(format!("{name}.new-{}", std::process::id()));
    let made = std::fs::create_dir_all(&fresh)
        .map_err(|error| Failure::Missing(format!("{} cannot be made: {error}", fresh.display())));
    let installed = match made {
        Ok(()) => install(&fresh).await,
        Err(failure) => Err(failure),
    };
    let moved = installed.and_then(|()| match std::fs::rename(&fresh, &folder) {
        Err(error) if !wanted.exists() => Err(Failure::Missing(format!(
            "{} cannot be moved to {}: {error}",
            fresh.display(),
            folder.display()
        ))),
        _ => Ok(wanted),
    });
    // What is left over: of an installation that failed, or that another run has overtaken.
    match std::fs::remove_dir_all(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => eprintln!("{} stays behind: {error}", fresh.display()),
        _ => {}
    }
    moved
}
