//! A log that grows, read from where it was left.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::Context;

/// The file and how far it was read.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    read: u64,
}

impl Tail {
    /// Begins at the present end of the file.
    pub(super) fn of(path: PathBuf) -> anyhow::Result<Self> {
        let length = path
            .metadata()
            .with_context(|| format!("cannot look at {}", path.display()))?
            .len();
        Ok(Self { path, read: length })
    }

    /// The lines that have been completed since. PostgreSQL writes a message with all its lines at once.
    pub(super) fn more(&mut self) -> anyhow::Result<String> {
        let cannot = || format!("cannot read {}", self.path.display());
        let mut file = File::open(&self.path).with_context(cannot)?;
        if file.metadata().with_context(cannot)?.len() < self.read {
            // Somebody has emptied it.
            self.read = 0;
        }
        file.seek(SeekFrom::Start(self.read)).with_context(cannot)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(cannot)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        self.read += whole as u64;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_that_are_new_are_read_and_an_emptied_file_is_begun_anew() {
        let path = std::env::temp_dir().join(format!("rowlock-tail-{}.log", std::process::id()));
        std::fs::write(&path, "old\n").unwrap();
        let mut tail = Tail::of(path.clone()).unwrap();
        assert_eq!(tail.more().unwrap(), "");
        std::fs::write(&path, "old\nnew\n\tmore\nhal").unwrap();
        assert_eq!(tail.more().unwrap(), "new\n\tmore\n");
        std::fs::write(&path, "old\nnew\n\tmore\nhalf\n").unwrap();
        assert_eq!(tail.more().unwrap(), "half\n");
        std::fs::write(&path, "anew\n").unwrap();
        assert_eq!(tail.more().unwrap(), "anew\n");
        std::fs::remove_file(&path).unwrap();
    }
}
