//! Result folders of earlier runs: reading one, and finding those that are there.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::failure::{Failure, Outcome};
use crate::results::{RESULTS_FILE, Results};

/// One result folder.
#[derive(Debug, Clone)]
pub(crate) struct Archived {
    pub(crate) folder: PathBuf,
    pub(crate) results: Results,
}

impl Archived {
    /// Reads a result folder, or the one that a `results.json` lies in.
    ///
    /// # Errors
    /// There are no results, or none of this format.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let folder = if path.is_file() {
            path.parent().unwrap_or(Path::new(".")).to_owned()
        } else {
            path.to_owned()
        };
        let file = folder.join(RESULTS_FILE);
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(&file)
            .map_err(|error| wrong(format!("{error}; is {} a result folder?", folder.display())))?;
        let results = serde_json::from_str(&text).map_err(|error| wrong(format!("not results of a run: {error}")))?;
        Ok(Self { folder, results })
    }

    /// When the run was started; the beginning of time where that was not recorded.
    pub(crate) fn started_at(&self) -> DateTime<Utc> {
        self.results.environment.started_at.parse().unwrap_or_default()
    }
}

/// The result folders in `roots`, or `roots` themselves where they are some; latest first. What cannot be read is told on
/// standard error and left out.
pub(crate) fn search(roots: &[PathBuf]) -> Vec<Archived> {
    let mut found: Vec<Archived> = roots
        .iter()
        .flat_map(|root| folders(root))
        .filter_map(|folder| {
            Archived::read(&folder)
                .inspect_err(|failure| eprintln!("left out: {failure}"))
                .ok()
        })
        .collect();
    found.sort_by_key(|archived| std::cmp::Reverse(archived.started_at()));
    found
}

/// Where to look for result folders: where runs put them, and the folders of `--results`.
///
/// # Errors
/// One of the latter does not exist.
pub(crate) fn roots(others: Vec<PathBuf>) -> Outcome<Vec<PathBuf>> {
    if let Some(missing) = others.iter().find(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!(
            "--results: there is no folder {}",
            missing.display()
        )));
    }
    Ok([vec![default_root()], others].concat())
}

/// Where runs put their results when nothing else is said.
pub(crate) fn default_root() -> PathBuf {
    deploy::root().join(".rowlock/results")
}

/// Folders with results; one that a run was cut off in before its analysis has none.
fn folders(root: &Path) -> Vec<PathBuf> {
    let has_results = |folder: &PathBuf| folder.join(RESULTS_FILE).is_file();
    if has_results(&root.to_owned()) {
        return vec![root.to_owned()];
    }
    let entries = std::fs::read_dir(root).into_iter().flatten();
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.filter(has_results).collect()
}
