//! Where a cluster lives: beside the rest of the stack's state if the user PostgreSQL runs as can get there.

use std::{
    fs::{self, DirBuilder, Metadata},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown},
    path::{Path, PathBuf},
};

use aws_lc_rs::digest;

use super::user::unprivileged_user;
use crate::DeployError;

/// State of clusters whose stack lies in a folder that their user cannot enter, such as root's home.
const ELSEWHERE: &str = "/var/lib/rowlock";

/// The cluster's folder, made if need be, and the user and group it belongs to when that is not us.
pub(super) fn choose(stack: &Path) -> Result<(PathBuf, Option<(u32, u32)>), DeployError> {
    if !nix::unistd::geteuid().is_root() {
        let dir = stack.join("postgres");
        make(&dir, 0o700)?;
        return Ok((dir, None));
    }
    let user = unprivileged_user()?;
    let user = (user.uid.as_raw(), user.gid.as_raw());
    let stack = fs::canonicalize(stack).map_err(|error| DeployError::io(format!("find {}", stack.display()), error))?;
    let dir = if can_reach(&stack, user) {
        stack.join("postgres")
    } else {
        make(Path::new(ELSEWHERE), 0o755)?;
        Path::new(ELSEWHERE).join(name_for(&stack))
    };
    make(&dir, 0o700)?;
    chown(&dir, Some(user.0), Some(user.1))
        .map_err(|error| DeployError::io(format!("give {} to PostgreSQL's user", dir.display()), error))?;
    Ok((dir, Some(user)))
}

/// The stack's name for the reader's eye, a hash of its whole path so that two checkouts do not meet.
pub(crate) fn name_for(stack: &Path) -> String {
    let hash = digest::digest(&digest::SHA256, stack.as_os_str().as_encoded_bytes());
    let hex: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    let name = stack.file_name().unwrap_or_default().to_string_lossy();
    format!("{hex}-{name}")
}

fn make(dir: &Path, mode: u32) -> Result<(), DeployError> {
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .map_err(|error| DeployError::io(format!("make {}", dir.display()), error))
}

/// Whether every folder on the way may be entered by a user in no other group than its own.
fn can_reach(dir: &Path, user: (u32, u32)) -> bool {
    dir.ancestors()
        .all(|folder| folder.metadata().is_ok_and(|meta| may_enter(&meta, user)))
}

fn may_enter(meta: &Metadata, (uid, gid): (u32, u32)) -> bool {
    let bit = match () {
        () if meta.uid() == uid => 0o100,
        () if meta.gid() == gid => 0o010,
        () => 0o001,
    };
    meta.mode() & bit != 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_closed_to_others_cannot_be_reached_by_another_user() {
        let outer = std::env::temp_dir().join(format!("rowlock-place-{}", std::process::id()));
        let inner = outer.join("stack");
        fs::create_dir_all(&inner).unwrap();
        let stranger = (
            outer.metadata().unwrap().uid() + 4242,
            outer.metadata().unwrap().gid() + 4242,
        );
        for (mode, reachable) in [(0o755, true), (0o711, true), (0o700, false)] {
            fs::set_permissions(&outer, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(can_reach(&inner, stranger), reachable, "{mode:o}");
        }
        fs::remove_dir_all(outer).unwrap();
    }

    #[test]
    fn two_checkouts_with_a_stack_of_the_same_name_get_different_folders() {
        let [a, b] = ["/a/.rowlock/default", "/b/.rowlock/default"].map(|path| name_for(Path::new(path)));
        assert_ne!(a, b);
        assert!(a.ends_with("-default"), "{a}");
    }
}
