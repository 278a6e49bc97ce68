//! Installing packages through apt without letting them start anything.

use std::{
    collections::VecDeque,
    fs,
    io::{BufRead, BufReader, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::DeployError;

/// Lines of apt's output that an error repeats.
const TAIL: usize = 15;

/// Makes `invoke-rc.d` and `deb-systemd-invoke` refuse every start while packages are unpacked.
const POLICY: &str =
    "#!/bin/sh\n# Temporary, by `rowlock setup`: no service start while packages are installed.\nexit 101\n";

/// Read last by `pg_createcluster`'s configuration, so it wins whatever the administrator's own file says.
const NO_CLUSTER: &str =
    "# Temporary, by `rowlock setup`: installing PostgreSQL makes no cluster.\ncreate_main_cluster = false\n";

/// Installs `packages` as root; `root` is `/` except in tests of the surroundings.
///
/// The work is done on a thread of its own that runs to its end even if the caller gives up: an apt that is killed half-way
/// leaves dpkg broken, and the files put aside must come back after it, not before.
pub(super) async fn install(
    root: &Path,
    packages: &[&'static str],
    progress: &mut dyn FnMut(&str),
) -> Result<(), DeployError> {
    let (lines, mut received) = unbounded_channel::<String>();
    let root = root.to_owned();
    let packages = packages.to_owned();
    let work = tokio::task::spawn_blocking(move || install_blocking(&root, &packages, &lines));
    while let Some(line) = received.recv().await {
        progress(&line);
    }
    work.await
        .context("the installing thread panicked")
        .and_then(|result| result)
        .map_err(|error| DeployError::start("the installation", format!("failed: {error:#}"), None))
}

fn install_blocking(root: &Path, packages: &[&str], lines: &UnboundedSender<String>) -> anyhow::Result<()> {
    let _no_starts = Stand::in_for(&root.join("usr/sbin/policy-rc.d"), POLICY, 0o755)?;
    let _no_cluster = Stand::in_for(
        &root.join("etc/postgresql-common/createcluster.d/zz-rowlock.conf"),
        NO_CLUSTER,
        0o644,
    )?;
    let mut updated = false;
    if lists_are_empty(root) {
        apt(&["update"], lines)?;
        updated = true;
    }
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    match apt(&arguments, lines) {
        // Either the lists know no such package, or they name a version that the mirror has replaced since.
        Err(_) if !updated => {
            apt(&["update"], lines)?;
            apt(&arguments, lines)
        }
        result => result,
    }
}

fn lists_are_empty(root: &Path) -> bool {
    let Ok(entries) = fs::read_dir(root.join("var/lib/apt/lists")) else {
        return true;
    };
    !entries
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
}

fn apt(arguments: &[&str], lines: &UnboundedSender<String>) -> anyhow::Result<()> {
    let what = format!("apt-get {}", arguments.join(" "));
    let mut child = Command::new("apt-get")
        .args(["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("NEEDRESTART_SUSPEND", "1")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                anyhow::anyhow!("there is no apt-get here: install the packages with this system's own means ({what})")
            }
            _ => anyhow::anyhow!("{what}: {error}"),
        })?;
    let stdout = child.stdout.take().context("apt-get without output")?;
    let stderr = child.stderr.take().context("apt-get without error output")?;
    let collect_errors = std::thread::spawn(move || tail(stderr, |_| ()));
    let mut last = tail(stdout, |line| {
        if ["Get:", "Unpacking ", "Setting up "]
            .iter()
            .any(|start| line.starts_with(start))
        {
            // The receiver may have gone; the installation goes on.
            let _ = lines.send(line.to_owned());
        }
    });
    last.extend(collect_errors.join().unwrap_or_default());
    let status = child.wait().with_context(|| what.clone())?;
    if status.success() {
        return Ok(());
    }
    let skip = last.len().saturating_sub(TAIL);
    let said: Vec<String> = last.into_iter().skip(skip).collect();
    anyhow::bail!("{what} ended with {status}:\n  {}", said.join("\n  "))
}

/// The last lines of a stream; each line is also handed to `see`.
fn tail(stream: impl std::io::Read, mut see: impl FnMut(&str)) -> VecDeque<String> {
    let mut last = VecDeque::with_capacity(TAIL + 1);
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        see(&line);
        last.push_back(line);
        if last.len() > TAIL {
            last.pop_front();
        }
    }
    last
}

/// A file that stands in for another until it is dropped; then the other is back, or there is none again.
struct Stand {
    path: PathBuf,
    aside: PathBuf,
    made_folder: Option<PathBuf>,
}

impl Stand {
    fn in_for(path: &Path, content: &str, mode: u32) -> anyhow::Result<Self> {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".rowlock-aside");
        let aside = PathBuf::from(aside);
        let folder = path.parent().context("a file has a folder")?;
        let made_folder = (!folder.exists()).then(|| folder.to_owned());
        fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        // If an earlier set-up was killed before it could tidy up, the original lies aside already and what is at `path` is ours.
        let ours_is_left = fs::read_to_string(path).is_ok_and(|text| text == content);
        if !ours_is_left && path.symlink_metadata().is_ok() {
            fs::rename(path, &aside).with_context(|| format!("moving {} aside", path.display()))?;
        }
        let stand = Self {
            path: path.to_owned(),
            aside,
            made_folder,
        };
        fs::write(path, content).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(|| format!("{}", path.display()))?;
        Ok(stand)
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        // Nothing better can be done with an error here than to leave the file for the next set-up to find.
        let _ = if self.aside.symlink_metadata().is_ok() {
            fs::rename(&self.aside, &self.path)
        } else {
            fs::remove_file(&self.path)
        };
        if let Some(folder) = &self.made_folder {
            // Fails, as it should, when a package has put something there meanwhile.
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rowlock-apt-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        path
    }

    #[test]
    fn a_file_that_was_there_comes_back_as_it_was() {
        let folder = folder("back");
        let path = folder.join("policy-rc.d");
        fs::write(&path, "#!/bin/sh\nexit 0\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("permitted");
        {
            let _stand = Stand::in_for(&path, POLICY, 0o755).expect("stands in");
            assert_eq!(fs::read_to_string(&path).expect("read"), POLICY);
        }
        assert_eq!(fs::read_to_string(&path).expect("read"), "#!/bin/sh\nexit 0\n");
        let mode = path.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_file_and_a_folder_that_were_not_there_are_gone_again() {
        let folder = folder("gone");
        let path = folder.join("createcluster.d/zz-rowlock.conf");
        drop(Stand::in_for(&path, NO_CLUSTER, 0o644).expect("stands in"));
        assert!(!folder.join("createcluster.d").exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn an_original_left_aside_by_a_killed_set_up_is_restored_by_the_next() {
        let folder = folder("killed");
        let path = folder.join("policy-rc.d");
        fs::write(&path, "original").expect("written");
        std::mem::forget(Stand::in_for(&path, POLICY, 0o755).expect("stands in"));
        drop(Stand::in_for(&path, POLICY, 0o755).expect("stands in again"));
        assert_eq!(fs::read_to_string(&path).expect("read"), "original");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_package_files_the_lists_count_as_empty() {
        let root = folder("lists");
        assert!(lists_are_empty(&root));
        let lists = root.join("var/lib/apt/lists");
        fs::create_dir_all(lists.join("partial")).expect("made");
        assert!(lists_are_empty(&root));
        fs::write(lists.join("mirror_main_binary-amd64_Packages.lz4"), "").expect("written");
        assert!(!lists_are_empty(&root));
        fs::remove_dir_all(root).expect("removed");
    }
}
