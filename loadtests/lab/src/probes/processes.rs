//! CPU and memory of every process of the stack, a server's children included.
//!
//! Memory is the proportional set size: summed resident sets would count PostgreSQL's shared buffers once a backend.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use deploy::Stack;

use super::Probe;
use crate::events::{ProcessSample, ProcessUse, Sample};

/// Reading a proportional set size walks page tables; once in this time is enough for something that moves slowly.
const PSS_EVERY: Duration = Duration::from_secs(4);

/// Name under which the lab itself (load engine, probes) is listed.
const LAB: &str = "rowlock";

pub(super) struct Processes {
    roots: Vec<(String, u32)>,
    last: Option<Reading>,
    pss: BTreeMap<String, f64>,
    pss_read: Option<Instant>,
}

impl Processes {
    pub(super) fn new(stack: &Stack) -> Self {
        let roots = stack.processes().into_iter().map(|process| (process.name, process.pid));
        let roots = roots.chain([(LAB.to_owned(), std::process::id())]).collect();
        Self {
            roots,
            last: None,
            pss: BTreeMap::new(),
            pss_read: None,
        }
    }
}

#[async_trait]
impl Probe for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let now = Reading::take(&self.roots)?;
        if self.pss_read.is_none_or(|read| read.elapsed() >= PSS_EVERY) {
            self.pss = pss_by_process(&self.roots)?;
            self.pss_read = Some(Instant::now());
        }
        let mut sample = ProcessSample::default();
        for (name, ticks) in &now.ticks {
            let cpu = self.last.as_ref().map_or(0.0, |last| last.cpu(&now, name, *ticks));
            let pss_mb = self.pss.get(name).copied().unwrap_or_default();
            sample.processes.insert(name.clone(), ProcessUse { cpu, pss_mb });
        }
        if let Some(last) = &self.last {
            let passed = now.machine.since(&last.machine);
            let total = passed.total.max(1) as f64;
            sample.machine_busy = passed.busy as f64 / total;
            sample.machine_steal = passed.steal as f64 / total;
        }
        self.last = Some(now);
        Ok(Sample::Processes(sample))
    }
}

/// Proportional set size of each of `roots` (name, pid) with its children, MiB.
///
/// # Errors
/// `/proc` cannot be read; as an ordinary user that is so for processes of others.
pub(crate) fn pss_by_process(roots: &[(String, u32)]) -> anyhow::Result<BTreeMap<String, f64>> {
    let table = table()?;
    let mut pss = BTreeMap::new();
    for (name, root) in roots {
        let own: u64 = family(*root, roots, &table).iter().filter_map(|pid| pss_kb(*pid)).sum();
        pss.insert(name.clone(), own as f64 / 1024.0);
    }
    Ok(pss)
}

/// CPU time of one process since it began, without its children; counted in hundredths of a second.
///
/// # Errors
/// There is no such process.
pub(crate) fn cpu_by_process(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let entry = entry(&stat).with_context(|| format!("{path} is not what Linux documents"))?;
    Ok(Duration::from_millis(entry.ticks * 10))
}

/// CPU clocks of one moment.
struct Reading {
    at: Instant,
    ticks: BTreeMap<String, u64>,
    machine: Machine,
}

/// Clock ticks of the whole machine, since it started or since another reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) total: u64,
    /// Neither idle nor waiting for I/O, nor taken by other guests of the same host.
    pub(crate) busy: u64,
    /// Taken by other guests.
    pub(crate) steal: u64,
}

impl Machine {
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            busy: self.busy.saturating_sub(before.busy),
            steal: self.steal.saturating_sub(before.steal),
        }
    }
}

/// The machine's clocks at this moment.
///
/// # Errors
/// `/proc/stat` cannot be read.
pub(crate) fn machine_now() -> anyhow::Result<Machine> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    machine(&stat).context("/proc/stat has no line `cpu`")
}

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    parent: u32,
    /// User and system time, its own and that of children it has waited for.
    ticks: u64,
}

impl Reading {
    fn take(roots: &[(String, u32)]) -> anyhow::Result<Self> {
        let table = table()?;
        let ticks = roots.iter().map(|(name, root)| {
            let family = family(*root, roots, &table);
            (
                name.clone(),
                family
                    .iter()
                    .filter_map(|pid| table.get(pid))
                    .map(|entry| entry.ticks)
                    .sum(),
            )
        });
        Ok(Self {
            at: Instant::now(),
            ticks: ticks.collect(),
            machine: machine_now()?,
        })
    }

    fn cpu(&self, now: &Self, name: &str, ticks: u64) -> f64 {
        let passed = now.at.duration_since(self.at).as_secs_f64();
        let used = ticks.saturating_sub(self.ticks.get(name).copied().unwrap_or(ticks));
        // Linux counts in hundredths of a second for user space on every architecture that PostgreSQL runs on.
        if passed > 0.0 {
            used as f64 / 100.0 / passed
        } else {
            0.0
        }
    }
}

/// A process and its descendants, without those that are listed by a name of their own.
fn family(root: u32, roots: &[(String, u32)], table: &BTreeMap<u32, Entry>) -> BTreeSet<u32> {
    let others: BTreeSet<u32> = roots.iter().map(|(_, pid)| *pid).filter(|pid| *pid != root).collect();
    let mut family = BTreeSet::from([root]);
    loop {
        let before = family.len();
        for (pid, entry) in table {
            if family.contains(&entry.parent) && !others.contains(pid) {
                family.insert(*pid);
            }
        }
        if family.len() == before {
            return family;
        }
    }
}

fn table() -> anyhow::Result<BTreeMap<u32, Entry>> {
    let mut table = BTreeMap::new();
    for process in fs::read_dir("/proc").context("cannot read /proc")? {
        let Some(pid) = process?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process may end between the listing and the reading.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(entry) = entry(&stat) {
            table.insert(pid, entry);
        }
    }
    Ok(table)
}

/// Parses `/proc/PID/stat`; the command in parentheses may itself hold spaces and parentheses.
fn entry(stat: &str) -> Option<Entry> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().unwrap_or(0))
        .sum();
    Some(Entry {
        parent: fields.get(1)?.parse().ok()?,
        ticks,
    })
}

fn machine(stat: &str) -> Option<Machine> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.as_slice() else {
        return None;
    };
    let busy = user + nice + system + irq + softirq;
    Some(Machine {
        total: busy + idle + iowait + steal,
        busy,
        steal: *steal,
    })
}

fn pss_kb(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99";
        assert_eq!(entry(stat), Some(Entry { parent: 7, ticks: 100 }));
    }

    #[test]
    fn a_family_stops_at_processes_listed_by_their_own_name() {
        let entry = |parent| Entry { parent, ticks: 0 };
        let table = BTreeMap::from([
            (1, entry(0)),
            (2, entry(1)),
            (3, entry(2)),
            (4, entry(1)),
            (5, entry(4)),
        ]);
        let roots = [("lab".to_owned(), 1), ("server".to_owned(), 4)];
        assert_eq!(family(1, &roots, &table), BTreeSet::from([1, 2, 3]));
        assert_eq!(family(4, &roots, &table), BTreeSet::from([4, 5]));
    }

    #[test]
    fn steal_is_not_busy() {
        let seen = machine("cpu  10 0 5 80 2 1 2 7 0 0\ncpu0 1 1 1 1 1 1 1 1\n").unwrap();
        assert_eq!(
            seen,
            Machine {
                total: 107,
                busy: 18,
                steal: 7
            }
        );
    }

    #[test]
    fn this_process_has_a_proportional_set_size() {
        let pss = pss_by_process(&[("me".to_owned(), std::process::id())]).unwrap();
        assert!(pss["me"] > 0.5, "{pss:?}");
    }
}
