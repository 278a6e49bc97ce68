//! The programs the stack is made of, and those its load engine is compared with: where distributions put them and which
//! version is needed.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::DeployError;

/// A program that is needed, and what was found of it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Tool {
    /// The program.
    pub name: &'static str,
    /// The Debian package that brings it.
    pub package: &'static str,
    /// Where it is.
    pub found: Option<PathBuf>,
    /// What it says of its version; `None` when it was not found or did not answer.
    pub version: Option<String>,
    /// The least version that will do.
    pub minimum: &'static str,
}

impl Tool {
    /// Found, and new enough.
    pub fn usable(&self) -> bool {
        self.found.is_some()
            && self
                .version
                .as_deref()
                .is_some_and(|version| at_least(version, self.minimum))
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.found, &self.version) {
            (None, _) => write!(f, "{} (package {})", self.name, self.package),
            (Some(path), None) => write!(f, "{} that tells its version (found {})", self.name, path.display()),
            (Some(path), Some(version)) if !at_least(version, self.minimum) => write!(
                f,
                "{} {} or newer (package {}; {} is version {version})",
                self.name,
                self.minimum,
                self.package,
                path.display()
            ),
            (Some(path), Some(version)) => write!(f, "{} {version} ({})", self.name, path.display()),
        }
    }
}

/// How to find one tool.
struct Known {
    name: &'static str,
    package: &'static str,
    minimum: &'static str,
    /// Folders in order of preference. The distribution's own come first and `PATH` is not consulted: what lies there may
    /// be a wrapper that switches user (`/usr/sbin/rabbitmq-server`) or starts another version (`pg_wrapper`).
    dirs: &'static [&'static str],
    version: Version,
}

enum Version {
    /// The first word of the output that starts with a digit, after an optional `v=`.
    Asked(&'static str),
    /// Read off the folder `lib/rabbitmq_server-X.Y.Z` beside `bin`: asking would start an Erlang machine.
    RabbitFolder,
    /// Read off the folder `erts-X.Y.Z` that it lies in: it has no option that tells.
    ErlangFolder,
    /// That of its package: it has no option that tells.
    Package,
}

const POSTGRES_DIRS: &[&str] = &["usr/lib/postgresql/15/bin"];

const KNOWN: &[Known] = &[
    Known {
        name: "postgres",
        package: "postgresql-15",
        minimum: "15",
        dirs: POSTGRES_DIRS,
        version: Version::Asked("--version"),
    },
    Known {
        name: "initdb",
        package: "postgresql-15",
        minimum: "15",
        dirs: POSTGRES_DIRS,
        version: Version::Asked("--version"),
    },
    Known {
        name: "pgbench",
        package: "postgresql-15",
        minimum: "15",
        dirs: POSTGRES_DIRS,
        version: Version::Asked("--version"),
    },
    Known {
        name: "redis-server",
        package: "redis-server",
        minimum: "6.2",
        dirs: &["usr/bin", "usr/local/bin"],
        version: Version::Asked("--version"),
    },
    Known {
        name: "rabbitmq-server",
        package: "rabbitmq-server",
        minimum: "3.10",
        dirs: &["usr/lib/rabbitmq/bin"],
        version: Version::RabbitFolder,
    },
    Known {
        name: "erl_call",
        package: "rabbitmq-server",
        minimum: "11",
        dirs: &["usr/lib/erlang/erts-*/bin"],
        version: Version::ErlangFolder,
    },
    Known {
        name: "pgbouncer",
        package: "pgbouncer",
        minimum: "1.18",
        dirs: &["usr/sbin", "usr/local/sbin"],
        version: Version::Asked("--version"),
    },
    Known {
        name: "haproxy",
        package: "haproxy",
        minimum: "2.6",
        dirs: &["usr/sbin", "usr/local/sbin"],
        version: Version::Asked("-v"),
    },
];

/// The load generators that published tests used.
const ORIGINALS: &[Known] = &[
    Known {
        name: "hey",
        package: "hey",
        minimum: "0.1.4",
        dirs: &["usr/bin"],
        version: Version::Package,
    },
    Known {
        name: "wrk",
        package: "wrk",
        minimum: "4.1",
        dirs: &["usr/bin"],
        version: Version::Package,
    },
];

/// Every tool the stack needs, found or not.
pub fn check() -> Vec<Tool> {
    look(KNOWN, Path::new("/"))
}

/// The load generators that the engine is compared with, and that run the scripts in `loadtests/hey/`, found or not. The
/// stack does without.
pub fn check_originals() -> Vec<Tool> {
    look(ORIGINALS, Path::new("/"))
}

/// What there is of them on a system installed under `root`.
fn look(known: &[Known], root: &Path) -> Vec<Tool> {
    known
        .iter()
        .map(|known| {
            let found = known
                .dirs
                .iter()
                .flat_map(|dir| expand(root, dir))
                .map(|dir| dir.join(known.name))
                .find(|path| is_executable(path));
            let version = found.as_deref().and_then(|path| known.version.of(path, known.package));
            Tool {
                name: known.name,
                package: known.package,
                found,
                version,
                minimum: known.minimum,
            }
        })
        .collect()
}

/// Paths of the programs the local runtime starts.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    /// The folder with `postgres`, `initdb`, `pgbench`.
    pub(crate) postgres: PathBuf,
    pub(crate) redis: PathBuf,
    pub(crate) rabbitmq: PathBuf,
    /// Has a running Erlang node evaluate an expression.
    pub(crate) erl_call: PathBuf,
    pub(crate) haproxy: PathBuf,
    pub(crate) pgbouncer: PathBuf,
}

/// The programs to start, or an error that names everything missing at once.
pub(crate) fn binaries() -> Result<Binaries, DeployError> {
    binaries_of(&check())
}

fn binaries_of(tools: &[Tool]) -> Result<Binaries, DeployError> {
    let unusable: Vec<String> = tools
        .iter()
        .filter(|tool| !tool.usable())
        .map(Tool::to_string)
        .collect();
    let path = |name: &str| {
        tools
            .iter()
            .find(|tool| tool.name == name)
            .and_then(|tool| tool.found.clone())
            .unwrap_or_default()
    };
    if !unusable.is_empty() {
        return Err(DeployError::Missing {
            what: unusable.join(", "),
            remedy: "run `cargo rowlock setup`, which installs what is not there".to_owned(),
        });
    }
    let mut postgres = path("postgres");
    postgres.pop();
    Ok(Binaries {
        postgres,
        redis: path("redis-server"),
        rabbitmq: path("rabbitmq-server"),
        erl_call: path("erl_call"),
        haproxy: path("haproxy"),
        pgbouncer: path("pgbouncer"),
    })
}

impl Version {
    fn of(&self, program: &Path, package: &str) -> Option<String> {
        let told = |command: &mut Command| version_in(&String::from_utf8_lossy(&command.output().ok()?.stdout));
        match self {
            Self::Asked(argument) => told(Command::new(program).arg(argument)),
            Self::Package => told(Command::new("dpkg-query").args(["--show", "--showformat", "${Version}", package])),
            Self::RabbitFolder => {
                let lib = program.parent()?.parent()?.join("lib");
                let mut versions: Vec<String> = std::fs::read_dir(lib)
                    .ok()?
                    .filter_map(|entry| {
                        let name = entry.ok()?.file_name().into_string().ok()?;
                        Some(name.strip_prefix("rabbitmq_server-")?.to_owned())
                    })
                    .collect();
                versions.sort_by_key(|version| numbers(version));
                versions.pop()
            }
            Self::ErlangFolder => {
                let folder = program.parent()?.parent()?.file_name()?.to_str()?;
                Some(folder.strip_prefix("erts-")?.to_owned())
            }
        }
    }
}

/// The folders a pattern stands for, newest version first; only a name's end may be a star.
fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![root.join(pattern)];
    };
    let (folder, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(numbers(&name[prefix.len()..])));
    names
        .into_iter()
        .map(|name| root.join(folder).join(name).join(after.trim_start_matches('/')))
        .collect()
}

fn version_in(output: &str) -> Option<String> {
    output
        .split_whitespace()
        .map(|word| word.trim_start_matches("v="))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(|word| word.split('-').next().unwrap_or(word).to_owned())
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

fn at_least(version: &str, minimum: &str) -> bool {
    numbers(version) >= numbers(minimum)
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        for (output, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18"),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0", "7.0.15"),
            (
                "HAProxy version 2.6.12-1+deb12u4 2025/10/11 - https://haproxy.org/",
                "2.6.12",
            ),
            ("0.1.4-2+b4", "0.1.4"),
        ] {
            assert_eq!(version_in(output).as_deref(), Some(version));
        }
    }

    #[test]
    fn versions_compare_by_number_and_not_by_letter() {
        assert!(at_least("3.10.8", "3.10"));
        assert!(!at_least("3.9.2", "3.10"));
        assert!(at_least("15.18", "15"));
        assert!(!at_least("14.12", "15"));
    }

    #[test]
    fn of_several_versions_in_folders_the_newest_is_found() {
        let root = std::env::temp_dir().join(format!("rowlock-versions-{}", std::process::id()));
        for version in ["9.3", "13.1.5"] {
            let bin = root.join(format!("usr/lib/erlang/erts-{version}/bin"));
            std::fs::create_dir_all(&bin).unwrap();
            std::fs::copy("/bin/true", bin.join("erl_call")).unwrap();
        }
        let tools = look(KNOWN, &root);
        let found = tools.iter().find(|tool| tool.name == "erl_call").unwrap();
        assert_eq!(found.version.as_deref(), Some("13.1.5"));
        assert!(found.usable());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_empty_system_lacks_every_tool_and_the_error_names_each_with_its_package() {
        let root = std::env::temp_dir().join(format!("rowlock-empty-{}", std::process::id()));
        let tools = look(KNOWN, &root);
        assert!(tools.iter().all(|tool| !tool.usable()));
        let error = binaries_of(&tools).expect_err("nothing is installed there");
        assert_eq!(error.exit_code(), 3);
        for package in [
            "postgresql-15",
            "redis-server",
            "rabbitmq-server",
            "haproxy",
            "pgbouncer",
        ] {
            assert!(error.to_string().contains(package), "{error}");
        }
    }

    #[test]
    fn a_tool_that_is_too_old_is_not_usable_and_says_which_version_is_needed() {
        let tool = Tool {
            name: "haproxy",
            package: "haproxy",
            found: Some(PathBuf::from("/usr/sbin/haproxy")),
            version: Some("2.4.22".to_owned()),
            minimum: "2.6",
        };
        assert!(!tool.usable());
        assert!(tool.to_string().contains("haproxy 2.6 or newer"), "{tool}");
    }
}
