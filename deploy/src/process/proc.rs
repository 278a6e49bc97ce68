//! What `/proc` tells about processes.

use std::path::Path;
use std::time::Duration;

use nix::unistd::Pid;

use super::MARKER;

/// Start time of a process in clock ticks since boot, or `None` when there is no such process.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    parse_start_ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// CPU time of a process since it began, in hundredths of a second; `None` when there is no such process.
pub(crate) fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

/// True while this very process exists and is not a zombie.
pub(crate) fn is_alive(pid: u32, start_ticks: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let zombie = stat
        .rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    !zombie && parse_start_ticks(&stat) == Some(start_ticks)
}

/// True when the process was started with `ROWLOCK_RUN=<run>` in its environment.
pub(crate) fn carries_marker(pid: u32, run: &str) -> bool {
    let wanted = format!("{MARKER}={run}");
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ
        .split(|byte| *byte == 0)
        .any(|variable| variable == wanted.as_bytes())
}

/// Every process that carries the run's marker, as (pid, start ticks), this one excepted.
pub(crate) fn marked(run: &str) -> Vec<(u32, u64)> {
    let own = std::process::id();
    pids()
        .filter(|pid| *pid != own && carries_marker(*pid, run))
        .filter_map(|pid| Some((pid, start_ticks(pid)?)))
        .filter(|(pid, start)| is_alive(*pid, *start))
        .collect()
}

/// A process and everything it has started that still has it, or one of its children, as parent; itself first.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
    }
    found
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

pub(crate) fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("Linux process ids fit in 22 bits"))
}

/// The second field, the command name, may hold blanks and parentheses: count from the last parenthesis.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_read_past_a_command_name_with_parentheses() {
        let stat = "77 (a ) b) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1000 10 18446744073709551615";
        assert_eq!(parse_start_ticks(stat), Some(4242));
    }

    #[test]
    fn the_family_of_a_process_is_itself_and_its_children() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let found = family(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found[0], std::process::id());
        assert!(found.contains(&child.id()), "{found:?}");
        assert!(!found.contains(&1));
    }

    #[test]
    fn this_process_is_alive_and_its_pid_with_another_start_time_is_not() {
        let pid = std::process::id();
        let start = start_ticks(pid).unwrap();
        assert!(is_alive(pid, start));
        assert!(!is_alive(pid, start + 1));
    }
}
