//! Which user PostgreSQL runs as: it refuses to be root.

use nix::unistd::User;

use crate::DeployError;

/// The user servers that refuse root run as when we are root: `postgres`, which the distribution's package makes, else `nobody`.
pub(crate) fn unprivileged_user() -> Result<User, DeployError> {
    for name in ["postgres", "nobody"] {
        if let Ok(Some(user)) = User::from_name(name) {
            return Ok(user);
        }
    }
    Err(DeployError::Missing {
        what: "a user for PostgreSQL, which refuses to run as root (neither postgres nor nobody exists),".to_owned(),
        remedy:
            "install postgresql-15 (`cargo rowlock setup`), which makes the user postgres, or run as an ordinary user"
                .to_owned(),
    })
}
