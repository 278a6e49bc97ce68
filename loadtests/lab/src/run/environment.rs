//! The machine and the servers of a run, for whoever compares two of them.

use std::collections::BTreeMap;
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::results::Environment;
use crate::{binaries, digest};

/// Looks at the machine, where what cannot be found out stays empty, and at the programs: those of the services, the link
/// and the lab itself.
pub(super) fn look<'a>(services: impl Iterator<Item = &'a String>) -> Outcome<Environment> {
    let programs = services.map(String::as_str).chain(["rowlock-link", "rowlock"]);
    let programs = programs.map(binaries::path).collect::<Outcome<Vec<_>>>()?;
    let programs = digest::of_files(programs)
        .map_err(|error| Failure::Missing(format!("a program that was built cannot be read: {error}")))?;
    Ok(Environment { programs, ..machine() })
}

fn machine() -> Environment {
    let servers: BTreeMap<String, String> = deploy::setup::check()
        .into_iter()
        .filter(|tool| SERVERS.contains(&tool.name))
        .filter_map(|tool| Some((tool.name.to_owned(), tool.version?)))
        .collect();
    Environment {
        cpus: std::thread::available_parallelism().map_or(0, usize::from),
        cpu_model: field("/proc/cpuinfo", "model name").unwrap_or_default(),
        memory_mb: field("/proc/meminfo", "MemTotal")
            .and_then(|text| kib(&text))
            .unwrap_or_default()
            / 1024,
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        servers,
        rowlock: version(),
        programs: String::new(),
        started_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    }
}

const SERVERS: [&str; 4] = ["postgres", "redis-server", "rabbitmq-server", "haproxy"];

/// The value of the first `name: value` line of a file under `/proc`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kib(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse().ok()
}

fn version() -> String {
    let commit = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .current_dir(deploy::root())
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match commit {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_processors_memory_and_a_kernel() {
        let seen = machine();
        assert!(
            seen.cpus > 0 && seen.memory_mb > 100 && !seen.kernel.is_empty(),
            "{seen:?}"
        );
    }
}
