//! Changes of the schema as data: what an arm's databases have beyond the migrations of their services.
//!
//! A change is one file, `migrations/<service>/changes/<name>.sql`. It is applied to the fresh copy of a database before the
//! services start, and gone with that copy.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::DeployError;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) name: String,
    /// The service whose database it is for.
    pub(crate) service: String,
    /// Statements that may be sent together.
    pub(crate) sql: String,
}

/// Names of the changes there are, sorted.
///
/// # Errors
/// The folder of migrations cannot be read.
pub fn changes() -> Result<Vec<String>, DeployError> {
    Ok(files()?.into_keys().collect())
}

/// Reads changes by their names, in that order.
///
/// # Errors
/// [`DeployError::Usage`] for a name that there is none of, with those there are, or for one that is given twice.
pub(crate) fn read(names: &[String]) -> Result<Vec<Change>, DeployError> {
    let files = files()?;
    let read = names.iter().enumerate().map(|(index, name)| {
        if names[..index].contains(name) {
            return Err(DeployError::Usage(format!("the schema change `{name}` is given twice")));
        }
        let Some((service, path)) = files.get(name) else {
            let known: Vec<&str> = files.keys().map(String::as_str).collect();
            return Err(DeployError::Usage(format!(
                "there is no schema change `{name}`; there are: {}",
                known.join(", ")
            )));
        };
        let sql =
            fs::read_to_string(path).map_err(|error| DeployError::io(format!("read {}", path.display()), error))?;
        Ok(Change {
            name: name.clone(),
            service: service.clone(),
            sql,
        })
    });
    read.collect()
}

/// Name of every change → its service and its file.
fn files() -> Result<BTreeMap<String, (String, PathBuf)>, DeployError> {
    let mut files = BTreeMap::new();
    for migrations in entries(&crate::root().join("migrations"))? {
        let changes = migrations.join("changes");
        if !changes.is_dir() {
            continue;
        }
        let service = migrations
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for path in entries(&changes)? {
            if path.extension().is_some_and(|ending| ending == "sql") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                if let Some((other, _)) = files.insert(name.clone(), (service.clone(), path)) {
                    return Err(DeployError::Usage(format!(
                        "{other} and {service} have a change of the schema called `{name}` each; one of them needs another name"
                    )));
                }
            }
        }
    }
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, DeployError> {
    let wrong = |error| DeployError::io(format!("list {}", folder.display()), error);
    let entries = fs::read_dir(folder).map_err(wrong)?;
    entries.map(|entry| Ok(entry.map_err(wrong)?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_name_and_belong_to_the_service_in_whose_folder_they_are() {
        let names = ["tenant-info-index", "tour-foreign-key"].map(str::to_owned);
        let read = read(&names).unwrap();
        assert_eq!(
            read.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(),
            names
        );
        assert!(read.iter().all(|change| change.service == "tour-data"), "{read:?}");
        assert!(read[1].sql.contains("FOREIGN KEY"));
    }

    #[test]
    fn an_unknown_change_is_wrong_usage_that_names_the_known_ones_and_none_is_made_twice() {
        let error = read(&["tour-index".to_owned()]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(&changes().unwrap().join(", ")), "{error}");
        let twice = ["tour-foreign-key", "tour-foreign-key"].map(str::to_owned);
        assert!(read(&twice).unwrap_err().to_string().contains("twice"));
    }
}
