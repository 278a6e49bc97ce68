//! Whether the machine itself can carry the stack: the user PostgreSQL runs as, memory, disk, the folder for temporary files.

use std::{fmt, path::Path};

/// One thing about the machine that was looked at.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// Whether the stack can run with it.
    pub ok: bool,
    /// What was found, with the value and, when it is not enough, what to do.
    pub says: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.says)
    }
}

/// 1 GB of shared buffers in preset `tuned`, about 500 MB for the rest of the stack.
const MEMORY_MB: u64 = 2048;
/// A cluster with a snapshot, WAL of a run, logs, and the build's own folder.
const DISK_MB: u64 = 3072;

/// Looks at the machine; `state` is the folder that will hold the servers' data (or its nearest existing parent).
pub fn machine(state: &Path) -> Vec<Finding> {
    vec![database_user(), memory(), disk(state), temporary()]
}

fn database_user() -> Finding {
    let (ok, says) = if nix::unistd::geteuid().is_root() {
        match crate::postgres::unprivileged_user() {
            Ok(user) => (
                true,
                format!("PostgreSQL refuses to run as root and will run as {}", user.name),
            ),
            Err(error) => (false, error.to_string()),
        }
    } else {
        (true, "every server runs as the present user".to_owned())
    };
    Finding { name: "user", ok, says }
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available_mb = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kib| kib / 1024);
    let (ok, says) = match available_mb {
        Some(mb) if mb >= MEMORY_MB => (true, format!("{mb} MB available")),
        Some(mb) => (
            false,
            format!("{mb} MB available, {MEMORY_MB} MB are needed for PostgreSQL's preset tuned and the other servers"),
        ),
        None => (true, "unknown (/proc/meminfo does not tell)".to_owned()),
    };
    Finding {
        name: "memory",
        ok,
        says,
    }
}

fn disk(state: &Path) -> Finding {
    let existing = state.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let (ok, says) = match nix::sys::statvfs::statvfs(existing) {
        Ok(stat) => {
            let mb = stat.blocks_available() * stat.fragment_size() / (1024 * 1024);
            let place = existing.display();
            if mb >= DISK_MB {
                (true, format!("{mb} MB free at {place}"))
            } else {
                (false, format!("{mb} MB free at {place}, {DISK_MB} MB are needed"))
            }
        }
        Err(error) => (false, format!("{}: {error}", existing.display())),
    };
    Finding { name: "disk", ok, says }
}

fn temporary() -> Finding {
    let dir = std::env::temp_dir();
    let probe = dir.join(format!("rowlock-doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe));
    Finding {
        name: "tmp",
        ok: written.is_ok(),
        says: match written {
            Ok(()) => format!("{} can be written", dir.display()),
            Err(error) => format!("{} cannot be written: {error}", dir.display()),
        },
    }
}
