//! The typed event stream of a run, `events.jsonl`: one JSON object a line, in the order things happened.
//!
//! Everything that shows a run reads this stream and nothing else: the terminal while it runs, the analysis and the
//! report afterwards. A crash therefore loses at most the line being written, and `run --resume` continues where it ended.
//!
//! # Raw series
//!
//! Whatever a figure of a report is made of is here, measurement by measurement (`round` and `arm` on every line):
//!
//! | event | how often | what |
//! |---|---|---|
//! | `second` | once a second | requests that ended in it, errors by kind, p50, p95 and longest latency; warm-up included and marked |
//! | `load` | once | totals and all latencies of the measured part as a histogram (µs, count), each plateau by itself, the series again |
//! | `sample` | each probe at its interval | waits and their graph, deadlocks, sessions, updates, queues, pools, CPU and memory, holds of the hot row |
//! | `warm_up` | once | how long it lasted, and whether the throughput was steady at its end |
//! | `preflight`, `round_trip`, `preset` | once | what was looked at before, with the figures |
//! | `audit`, `fault` | as it happens | invariants; faults and recoveries |

mod deadlock;
mod fault;
mod run;
mod sample;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::results::{Audit, CheckId, Environment, PreflightCheck};

pub(crate) use deadlock::{Deadlock, DeadlockSample, DeadlockedSession};
pub(crate) use fault::FaultState;
pub(crate) use run::Manner;
pub(crate) use sample::{
    ActivitySample, HoldSample, HotSample, HotTable, LockSample, PoolSample, PoolUse, ProcessSample, ProcessUse,
    QueueSample, RollbackSample, Root, Sample, Waiter,
};

/// Name of the stream's file in a result folder.
pub(crate) const FILE: &str = "events.jsonl";

/// Version of the stream's format; raised when a reader of the old format would misread the new one.
pub(crate) const SCHEMA: u32 = 1;

/// One line of the stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stamped {
    /// Wall clock, milliseconds since the Unix epoch.
    pub(crate) at_ms: u64,
    #[serde(flatten)]
    pub(crate) event: Event,
}

/// Which measurement an event belongs to: an arm, once a round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct RunKey {
    /// Counts from 1.
    pub(crate) round: u32,
    /// Name of the arm in the experiment's file.
    pub(crate) arm: String,
}

/// What can happen in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// First line of every stream.
    RunStarted {
        schema: u32,
        experiment: String,
        question: String,
        /// Order in which the measurements will be made.
        plan: Vec<RunKey>,
        /// Length of the measured part of each, seconds.
        duration_s: f64,
        warm_up_s: f64,
        users: usize,
        environment: Environment,
        #[serde(flatten)]
        manner: Manner,
    },
    /// A run that had been cut off goes on.
    Resumed {
        /// The measurements that had no result yet, in the order in which they are made now.
        remaining: Vec<RunKey>,
    },
    /// The stack is being brought to this arm's topology.
    ArmStarted {
        #[serde(flatten)]
        key: RunKey,
        /// What differs from the experiment's common settings, as `setting=value`.
        changes: Vec<String>,
    },
    /// What was looked at before a measurement.
    Preflight {
        #[serde(flatten)]
        key: RunKey,
        checks: Vec<PreflightCheck>,
    },
    /// The measurement was not made, as it has to be: the preflight check that the experiment expects has failed.
    Refused {
        #[serde(flatten)]
        key: RunKey,
        id: CheckId,
    },
    /// The measured part begins.
    WarmUp {
        #[serde(flatten)]
        key: RunKey,
        /// Length of the warm-up, seconds.
        detected_s: f64,
        /// False when the throughput was still changing and the warm-up was ended by its bound.
        steady: bool,
        says: String,
    },
    /// A phase of a measurement begins.
    Phase {
        #[serde(flatten)]
        key: RunKey,
        phase: Phase,
    },
    /// One second of load, by the time of completion.
    Second {
        #[serde(flatten)]
        key: RunKey,
        second: load::Second,
    },
    /// One sample of one probe.
    Sample {
        #[serde(flatten)]
        key: RunKey,
        /// Seconds since the load began (warm-up included).
        t_s: f64,
        sample: Sample,
    },
    /// A fault of the measurement reached another state.
    Fault {
        #[serde(flatten)]
        key: RunKey,
        /// Seconds since the load began (warm-up included).
        t_s: f64,
        /// Its place among the measurement's faults, counted from 1.
        number: usize,
        kind: String,
        target: String,
        #[serde(flatten)]
        state: FaultState,
    },
    /// A probe could not take a sample; the run goes on without it.
    ProbeFailed {
        #[serde(flatten)]
        key: RunKey,
        probe: String,
        error: String,
    },
    /// What the load engine counted over the measured part.
    Load {
        #[serde(flatten)]
        key: RunKey,
        load: Box<load::Summary>,
    },
    /// Round trip of a `SELECT 1` over the service's way to PostgreSQL, measured before the load, milliseconds.
    RoundTrip {
        #[serde(flatten)]
        key: RunKey,
        asked_ms: f64,
        measured_ms: f64,
    },
    /// Parameters of the PostgreSQL preset that are not in force, as `NAME should be … and is …`.
    Preset {
        #[serde(flatten)]
        key: RunKey,
        not_in_force: Vec<String>,
    },
    /// What the alternatives in use give up by their own word, as `AXIS NAME: …`; the published ones are left out.
    GivesUp {
        #[serde(flatten)]
        key: RunKey,
        says: Vec<String>,
    },
    /// The invariants, checked from outside after the load.
    Audit {
        #[serde(flatten)]
        key: RunKey,
        audit: Audit,
    },
    /// A measurement ended without a result.
    ArmFailed {
        #[serde(flatten)]
        key: RunKey,
        reason: String,
    },
    /// Last line of a stream that was not cut off.
    RunFinished { completed: bool },
}

/// Phases of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Services stopped, database restored, settings applied, services started.
    Switch,
    /// Load that is not counted.
    WarmUp,
    /// Load that is counted.
    Load,
    /// Waiting until the queue is empty, at most a bound.
    Drain,
    /// Invariants.
    Audit,
}

/// Appends events to a stream; every event is on disk (in the page cache) before the call returns.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
}

impl Writer {
    /// Creates `events.jsonl` in `folder`, which must exist. An existing stream is continued, after its last whole line.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        cut_partial_line(&file).with_context(|| format!("cannot continue {}", path.display()))?;
        Ok(Self { file })
    }

    /// Writes one event with the present time and returns it as written.
    pub(crate) fn write(&mut self, event: Event) -> anyhow::Result<Stamped> {
        let stamped = Stamped { at_ms: now_ms(), event };
        let mut line = serde_json::to_string(&stamped).context("an event could not be written as JSON")?;
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .context("cannot append to events.jsonl")?;
        Ok(stamped)
    }
}

/// A line that a crash has cut off would run into the next one.
fn cut_partial_line(mut file: &File) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < bytes.len() {
        file.set_len(whole as u64)?;
    }
    Ok(())
}

/// Reads a stream. A last line that was cut off by a crash is left out; any other malformed line is an error that names it.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Vec<Stamped>> {
    let path = folder.join(FILE);
    let file = File::open(&path).with_context(|| {
        format!(
            "cannot read {}: is {} a result folder?",
            path.display(),
            folder.display()
        )
    })?;
    let lines: Vec<String> = BufReader::new(file)
        .lines()
        .collect::<Result<_, _>>()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let mut events = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(event) => events.push(event),
            Err(_) if index + 1 == lines.len() => {}
            Err(error) => anyhow::bail!("{}: line {} is not an event: {error}", path.display(), index + 1),
        }
    }
    Ok(events)
}

/// Wall clock, milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    ms_of(SystemTime::now())
}

/// A moment as milliseconds since the Unix epoch.
pub(crate) fn ms_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("rowlock-events-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_stream_is_read_back_as_written_and_a_cut_last_line_is_left_out() {
        let folder = folder("cut");
        let mut writer = Writer::open(&folder).unwrap();
        let key = RunKey {
            round: 1,
            arm: "one".into(),
        };
        writer
            .write(Event::Phase {
                key: key.clone(),
                phase: Phase::Load,
            })
            .unwrap();
        writer
            .write(Event::ArmFailed {
                key,
                reason: "why".into(),
            })
            .unwrap();
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();
        let events = read(&folder).unwrap();
        // What is written after the crash does not run into the line that was cut.
        let mut writer = Writer::open(&folder).unwrap();
        writer.write(Event::RunFinished { completed: true }).unwrap();
        let continued = read(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((events.len(), continued.len()), (1, 2));
        assert!(matches!(continued[1].event, Event::RunFinished { completed: true }));
        assert!(matches!(&events[0].event, Event::Phase { key, phase: Phase::Load } if key.arm == "one"));
    }

    #[test]
    fn a_malformed_line_in_the_middle_is_named() {
        let folder = folder("middle");
        std::fs::write(
            folder.join(FILE),
            "{}\n{\"at_ms\":1,\"event\":\"run_finished\",\"completed\":true}\n",
        )
        .unwrap();
        let error = read(&folder).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("line 1"), "{error}");
    }
}
