//! Control groups: finding where one can be made, and the files that differ between the versions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::postgres::name_for;

/// The kernel deals out CPU in periods of this length, µs.
const PERIOD_US: u64 = 100_000;

/// The two kinds there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group of processes that together may use so many cores. Dropped, it is removed once nothing runs in it.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

/// The name of a replica's group: the same in every run of the stack, so that what a crash left behind is used again.
pub(super) fn name(stack: &Path, replica: &str) -> String {
    format!("rowlock-{}-{replica}", name_for(stack))
}

impl Group {
    /// Makes the group below the one this process is in, or above where that cannot have any.
    ///
    /// # Errors
    /// Why not, in words: no such hierarchy, or not permitted.
    pub(super) fn make(name: &str, cores: f64) -> Result<Self, String> {
        let read = |path| fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"));
        let parents = parents(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?);
        let mut refused = Vec::new();
        for (version, parent) in parents {
            match make_in(version, &parent, name, cores) {
                Ok(group) => return Ok(group),
                Err(error) => refused.push(format!("{}: {error}", parent.display())),
            }
        }
        if refused.is_empty() {
            return Err("this machine has no control groups that limit CPU".to_owned());
        }
        Err(format!(
            "this machine does not let us limit CPU ({}); run as root, or in a control group that was delegated to you",
            refused.join("; ")
        ))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Times that the group was held back since it was made.
    pub(super) fn throttled(&self) -> io::Result<u64> {
        let stat = fs::read_to_string(self.0.join("cpu.stat"))?;
        let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        count
            .and_then(|count| count.trim().parse().ok())
            .ok_or_else(|| io::Error::other("its cpu.stat has no nr_throttled"))
    }

    pub(super) fn members(&self) -> io::Result<Vec<u32>> {
        let members = fs::read_to_string(self.0.join(MEMBERS))?;
        Ok(members.lines().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// Puts a process and all its threads into the group.
    pub(super) fn take(&self, pid: u32) -> io::Result<()> {
        join(&self.0, pid)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Refused while something runs in it; the next run of the stack uses it again.
        let _ = fs::remove_dir(&self.0);
    }
}

const MEMBERS: &str = "cgroup.procs";

/// Puts a process and all its threads into the group of this folder.
pub(crate) fn join(group: &Path, pid: u32) -> io::Result<()> {
    fs::write(group.join(MEMBERS), pid.to_string())
}

fn make_in(version: Version, parent: &Path, name: &str, cores: f64) -> io::Result<Group> {
    if version == Version::Two {
        let control = parent.join("cgroup.subtree_control");
        let enabled = fs::read_to_string(&control)?;
        if !enabled.split_whitespace().any(|controller| controller == "cpu") {
            fs::write(&control, "+cpu")?;
        }
    }
    let folder = parent.join(name);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Removed again when a file of it cannot be written.
    let group = Group(folder);
    let quota = (cores * PERIOD_US as f64).round() as u64;
    match version {
        Version::One => {
            fs::write(group.0.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string())?;
        }
        Version::Two => fs::write(group.0.join("cpu.max"), format!("{quota} {PERIOD_US}"))?,
    }
    Ok(group)
}

/// Folders in which a group could be made, most promising first: of version 1 if the CPU controller is there, else of
/// version 2; the own group, then those around it. In version 2 a group with processes cannot have groups inside that limit
/// CPU, unless it is the root of all.
fn parents(mounts: &str, own: &str) -> Vec<(Version, PathBuf)> {
    let mounted = mounts.lines().filter_map(mount);
    let mut found: Vec<(Version, PathBuf)> = Vec::new();
    for (version, root, at) in mounted {
        let Some(path) = own_path(own, version) else { continue };
        let inside = path.strip_prefix(&root).unwrap_or_else(|_| Path::new(""));
        let folders = inside.ancestors().map(|folder| (version, at.join(folder)));
        match version {
            Version::One => {
                found.splice(0..0, folders);
            }
            Version::Two => found.extend(folders),
        }
    }
    found
}

/// Version, root and place of a line of mountinfo that mounts a hierarchy which may limit CPU:
/// `32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu`.
fn mount(line: &str) -> Option<(Version, PathBuf, PathBuf)> {
    let (place, what) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (place.next()?, place.next()?);
    let mut what = what.split(' ');
    let (kind, options) = (what.next()?, what.nth(1)?);
    let version = match kind {
        "cgroup" if options.split(',').any(|option| option == "cpu") => Version::One,
        "cgroup2" => Version::Two,
        _ => return None,
    };
    // Paths of control groups begin with a slash that joining must not take for the root of all files.
    Some((version, root.into(), at.into()))
}

/// The own group's path in that hierarchy: `1:cpu,cpuacct:/user` or `0::/user.slice`.
fn own_path(own: &str, version: Version) -> Option<PathBuf> {
    own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let wanted = match version {
            Version::One => controllers.split(',').any(|controller| controller == "cpu"),
            Version::Two => controllers.is_empty(),
        };
        wanted.then(|| path.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn version_1_comes_before_version_2_and_the_own_group_before_those_around_it() {
        let mounts = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
        let own = "4:cpuset:/x\n1:cpu,cpuacct:/a/b\n0::/u\n";
        let folders: Vec<String> = parents(mounts, own)
            .into_iter()
            .map(|(_, folder)| folder.display().to_string())
            .collect();
        assert_eq!(
            folders,
            [
                "/sys/fs/cgroup/cpu/a/b",
                "/sys/fs/cgroup/cpu/a",
                "/sys/fs/cgroup/cpu/",
                "/sys/fs/cgroup/unified/u",
                "/sys/fs/cgroup/unified/",
            ]
        );
    }

    #[test]
    fn in_a_container_the_path_is_counted_from_what_is_mounted() {
        let mounts = "9 8 0:1 /docker/7 /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let found = parents(mounts, "0::/docker/7/inner\n");
        assert_eq!(found[0], (Version::Two, PathBuf::from("/sys/fs/cgroup/inner")));
        assert!(parents("9 8 0:1 / / rw - ext4 /dev/vda rw\n", "0::/\n").is_empty());
    }

    /// The files are the kernel's to interpret; which are written with what is ours.
    #[test]
    fn each_version_gets_the_files_it_knows() {
        let folder = Folder::new("groups");
        let parent = folder.path();
        fs::write(parent.join("cgroup.subtree_control"), "memory").unwrap();
        let two = make_in(Version::Two, parent, "two", 0.5).unwrap();
        let control = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap();
        assert_eq!(control, "+cpu");
        assert_eq!(
            fs::read_to_string(two.folder().join("cpu.max")).unwrap(),
            "50000 100000"
        );
        let one = make_in(Version::One, parent, "one", 1.25).unwrap();
        assert_eq!(
            fs::read_to_string(one.folder().join("cpu.cfs_quota_us")).unwrap(),
            "125000"
        );
        fs::write(one.folder().join("cpu.stat"), "nr_periods 9\nnr_throttled 4\n").unwrap();
        assert_eq!(one.throttled().unwrap(), 4);
        one.take(77).unwrap();
        assert_eq!(one.members().unwrap(), [77]);
    }
}
