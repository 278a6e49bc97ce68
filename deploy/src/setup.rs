//! What the stack needs on this machine: finding it, and installing what is missing.

mod apt;
mod machine;
mod tools;

use std::path::Path;

pub use machine::{Finding, machine};
pub(crate) use tools::{Binaries, binaries};
pub use tools::{Tool, check, check_originals};

use crate::DeployError;

/// Installs the packages of those tools that were not found, through apt, as root.
///
/// The packages' own service starts are suppressed and no default PostgreSQL cluster is made, so nothing runs afterwards
/// that did not run before. Without root it changes nothing and the error carries the command to type.
pub async fn install(tools: &[Tool], progress: &mut dyn FnMut(&str)) -> Result<(), DeployError> {
    let packages = packages(tools, nix::unistd::geteuid().is_root())?;
    if packages.is_empty() {
        return Ok(());
    }
    progress(&format!(
        "installing {} (their own services are not started)",
        packages.join(", ")
    ));
    apt::install(Path::new("/"), &packages, progress).await?;
    let wanted = |tool: &Tool| tools.iter().any(|each| each.name == tool.name);
    let left: Vec<String> = check()
        .iter()
        .chain(&check_originals())
        .filter(|tool| wanted(tool) && !tool.usable())
        .map(Tool::to_string)
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let left = left.join(", ");
    let reason = format!("ended well, but there still is no {left}: this system's packages are not those of Debian 12");
    Err(DeployError::start("the installation", reason, None))
}

/// The packages to install, or, for someone who may not install them, the command that does.
fn packages(tools: &[Tool], root: bool) -> Result<Vec<&'static str>, DeployError> {
    let mut packages: Vec<&'static str> = tools
        .iter()
        .filter(|tool| !tool.usable())
        .map(|tool| tool.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() || root {
        return Ok(packages);
    }
    Err(DeployError::Missing {
        what: packages.join(", "),
        remedy: format!("installing needs root; run\n  {}", command_for_people(&packages)),
    })
}

/// The line to type for the same installation: this very program as root where it can be named, since a bare `apt-get`
/// would start the packages' services.
fn command_for_people(packages: &[&str]) -> String {
    let program = std::env::current_exe()
        .ok()
        .filter(|path| path.file_name().is_some_and(|name| name == "rowlock"));
    match program {
        Some(path) => format!("sudo {} setup", path.display()),
        None => format!(
            "sudo apt-get install --yes --no-install-recommends {}",
            packages.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str, package: &'static str) -> Tool {
        Tool {
            name,
            package,
            found: None,
            version: None,
            minimum: "1",
        }
    }

    #[test]
    fn two_tools_of_one_package_ask_for_it_once() {
        let missing = [
            tool("initdb", "postgresql-15"),
            tool("haproxy", "haproxy"),
            tool("postgres", "postgresql-15"),
        ];
        assert_eq!(packages(&missing, true).unwrap(), ["haproxy", "postgresql-15"]);
    }

    #[test]
    fn without_root_the_error_is_the_command_to_type_and_exit_status_3() {
        let missing = [tool("redis-server", "redis-server"), tool("haproxy", "haproxy")];
        let error = packages(&missing, false).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let command = "sudo apt-get install --yes --no-install-recommends haproxy redis-server";
        assert!(error.to_string().contains(command), "{error}");
    }

    #[test]
    fn with_everything_there_nobody_needs_root() {
        let there = Tool {
            found: Some("/usr/sbin/haproxy".into()),
            version: Some("2.6".into()),
            ..tool("haproxy", "haproxy")
        };
        assert!(packages(&[there], false).unwrap().is_empty());
    }
}
