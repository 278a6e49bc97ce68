//! The terminal as a reader of the event stream: bars where there is a terminal, plain lines elsewhere.
//!
//! Everything goes to standard error; standard output is for results.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::events::{Event, FaultState, Phase, RunKey, Sample};

/// What is shown of a run.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    measurements: u64,
    /// Which measurement is under way, counted from 1.
    current: u64,
    /// Waiters of the last look at the lock table.
    waiters: usize,
}

impl Progress {
    /// Bars when standard error is a terminal.
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(bar);
        Self {
            bar,
            measurements: 0,
            current: 0,
            waiters: 0,
        }
    }

    /// Shows one event.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::RunStarted { plan, experiment, .. } => {
                self.measurements = plan.len() as u64;
                if let Some(bar) = &self.bar {
                    bar.set_length(self.measurements);
                    bar.enable_steady_tick(Duration::from_millis(250));
                }
                self.line(&format!("{experiment}: {} measurements", plan.len()));
            }
            Event::ArmStarted { .. } => {
                self.current += 1;
                self.waiters = 0;
            }
            Event::Phase { key, phase } => self.phase(key, *phase),
            Event::Second { key, second } => self.moment(&format!(
                "{}: {:>5} requests/s, p95 {:.0} ms, {} waiting for a lock{}",
                name(key),
                second.ok,
                second.p95_ms,
                self.waiters,
                if second.warm_up { " (warming up)" } else { "" }
            )),
            Event::Sample {
                sample: Sample::Locks(locks),
                ..
            } => self.waiters = locks.waiters.len(),
            Event::Sample { .. } => {}
            Event::Fault {
                kind, target, state, ..
            } => self.line(&format!("    fault {kind} {target}: {}", course(state))),
            Event::ProbeFailed { probe, error, .. } => self.line(&format!("probe {probe} failed: {error}")),
            Event::RoundTrip { .. } | Event::GivesUp { .. } => {}
            Event::Resumed { remaining } => {
                self.current = self.measurements - remaining.len() as u64;
                if let Some(bar) = &self.bar {
                    bar.set_position(self.current);
                }
                self.line(&format!("resumed: {} measurements are left", remaining.len()));
            }
            Event::Preflight { key, checks } => {
                for check in checks.iter().filter(|check| !check.ok) {
                    self.line(&format!("{}: preflight, {}: {}", name(key), check.id, check.says));
                }
            }
            Event::Refused { key, id } => {
                self.line(&format!(
                    "[{}/{}] {}: stopped by `{id}` before it was measured, as it has to be",
                    self.current,
                    self.measurements,
                    name(key)
                ));
                self.advance();
            }
            Event::WarmUp { key, steady, says, .. } => {
                if !steady {
                    self.line(&format!("{}: {says}", name(key)));
                }
            }
            Event::Load { key, load } => {
                let errors = load.failed();
                self.line(&format!(
                    "[{}/{}] {}: {:.1} requests/s, p95 {:.0} ms{}",
                    self.current,
                    self.measurements,
                    name(key),
                    load.throughput,
                    load.latency_ms(0.95),
                    if errors > 0 {
                        format!(", {errors} ERRORS")
                    } else {
                        String::new()
                    }
                ));
                for (kind, detail) in &load.failures {
                    self.line(&format!("    {kind}: {detail}"));
                }
            }
            Event::Preset { key, not_in_force } => {
                if !not_in_force.is_empty() {
                    self.line(&format!("{}: not in force: {}", name(key), not_in_force.join("; ")));
                }
            }
            Event::Audit { key, audit } => {
                for check in audit.checks.iter().filter(|check| !check.passed) {
                    self.line(&format!(
                        "AUDIT FAILED, {}: {} ({} violations: {})",
                        name(key),
                        check.says,
                        check.violations,
                        check.examples.join("; ")
                    ));
                }
                self.advance();
            }
            Event::ArmFailed { key, reason } => {
                self.line(&format!(
                    "[{}/{}] {} FAILED: {reason}",
                    self.current,
                    self.measurements,
                    name(key)
                ));
                self.advance();
            }
            Event::RunFinished { .. } => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
            }
        }
    }

    /// Shows what goes on outside the stream.
    pub(super) fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(line.to_owned()),
            None => eprintln!("{line}"),
        }
    }

    fn phase(&self, key: &RunKey, phase: Phase) {
        let says = match phase {
            Phase::Switch => "switching",
            Phase::WarmUp => "warming up",
            Phase::Load => "under load",
            Phase::Drain => "waiting for the queue to drain",
            Phase::Audit => "auditing",
        };
        self.moment(&format!("{}: {says}", name(key)));
    }

    /// Something that is out of date in a second: it has a place on a terminal and none in a log.
    fn moment(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

fn course(state: &FaultState) -> String {
    match state {
        FaultState::Inflicted { .. } => "inflicted".to_owned(),
        FaultState::Healed { .. } => "healed".to_owned(),
        FaultState::Recovered {
            after_s,
            repeated,
            longest_gap_s,
            ..
        } => format!(
            "a tour was acknowledged {after_s:.2} s later; {repeated} requests repeated, {longest_gap_s:.2} s without any"
        ),
        FaultState::Outlived {
            seen_s: Some(after), ..
        } => format!("its change was seen {after:.2} s later"),
        FaultState::Outlived { seen_s: None, .. } => "its change is lost, or nobody is promised to see it".to_owned(),
        FaultState::Failed { reason } => format!("FAILED: {reason}"),
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {wide_msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn name(key: &RunKey) -> String {
    format!("{} (round {})", key.arm, key.round)
}
