//! Secrets of a stack: made once, kept in one file that only its owner can read, never part of the checkout.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rand::distr::{Alphanumeric, SampleString as _};

use crate::DeployError;

/// 43 letters and digits carry 256 bits, and need no quoting in a URL or a configuration file.
const LENGTH: usize = 43;

/// Named secrets; a name that is asked for the first time gets a new one.
pub(crate) struct Secrets {
    file: PathBuf,
    known: BTreeMap<String, String>,
}

impl Secrets {
    /// Opens `secrets.json` in `folder`, which is made with mode 0700 when it is not there.
    pub(crate) fn open(folder: &Path) -> Result<Self, DeployError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| DeployError::io(format!("make {}", folder.display()), error))?;
        let file = folder.join("secrets.json");
        let known = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                DeployError::Usage(format!(
                    "{} is damaged ({error}); remove the folder {} to start afresh",
                    file.display(),
                    folder.display()
                ))
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(DeployError::io(format!("read {}", file.display()), error)),
        };
        Ok(Self { file, known })
    }

    /// The secret of this name, stored before it is given out.
    pub(crate) fn get(&mut self, name: &str) -> Result<String, DeployError> {
        if let Some(secret) = self.known.get(name) {
            return Ok(secret.clone());
        }
        let secret = Alphanumeric.sample_string(&mut rand::rng(), LENGTH);
        self.known.insert(name.to_owned(), secret.clone());
        let text = serde_json::to_vec_pretty(&self.known)
            .map_err(|error| DeployError::io(format!("write {}", self.file.display()), error.into()))?;
        write_private(&self.file, &text)?;
        Ok(secret)
    }
}

/// Replaces a file in one step by one that only its owner can read.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), DeployError> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let write = || {
        // A leftover of a killed run may carry another mode, which opening it would keep.
        match fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(content)?;
        fs::rename(&fresh, path)
    };
    write().map_err(|error| DeployError::io(format!("write {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rowlock-secrets-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_secret_is_made_once_and_is_the_same_after_reopening() {
        let folder = folder("once");
        let first = Secrets::open(&folder).unwrap().get("redis").unwrap();
        let mut again = Secrets::open(&folder).unwrap();
        assert_eq!(again.get("redis").unwrap(), first);
        assert_ne!(again.get("postgres").unwrap(), first);
        assert_eq!(first.len(), LENGTH);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_the_owner_can_read_the_file_and_enter_the_folder() {
        let folder = folder("mode");
        Secrets::open(&folder).unwrap().get("redis").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("secrets.json")), 0o600);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_private_file_replaces_one_that_others_could_read() {
        let folder = folder("replace");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("redis.conf");
        for path in [file.clone(), folder.join("redis.conf.new")] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        write_private(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(folder).unwrap();
    }
}
