//! Cells about what was promised: whether it was kept, what was lost as declared, how late readers were.

use super::dash;
use crate::results::{Arm, Audit};

pub(super) fn audit(arm: &Arm) -> String {
    let broken: Vec<&str> = arm
        .audit
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.name.as_str())
        .collect();
    let of = match arm.audit.tenants {
        0 | 1 => String::new(),
        several => format!(" of {several} tenants"),
    };
    match (arm.audit.passed, broken.is_empty()) {
        (true, _) => format!(
            "passed ({} checks, {} tours{of})",
            arm.audit.checks.len(),
            arm.audit.acknowledged
        ),
        (false, true) => "MISSING".to_owned(),
        (false, false) => format!("FAILED: {}", broken.join(", ")),
    }
}

pub(super) fn declared_loss(arm: &Arm) -> String {
    let Audit {
        may_lose_ms,
        declared_losses,
        lost_messages,
        older_reads,
        ..
    } = arm.audit;
    let mut lost = Vec::new();
    if may_lose_ms > 0 {
        lost.push(format!(
            "{declared_losses} (a crash may cost the last {may_lose_ms} ms)"
        ));
    }
    if lost_messages > 0 {
        lost.push(format!("{lost_messages} messages"));
    }
    if older_reads > 0 {
        lost.push(format!("{older_reads} reads of older values"));
    }
    if lost.is_empty() {
        return "none".to_owned();
    }
    lost.join("; ")
}

pub(super) fn unseen(arm: &Arm) -> String {
    let Some(staleness) = arm.staleness.as_ref().filter(|staleness| staleness.changes > 0) else {
        return dash();
    };
    let under_load = if staleness.under_load_max_ms > 0.0 {
        format!(", under load at least {:.0}", staleness.under_load_max_ms)
    } else {
        String::new()
    };
    format!(
        "{:.0}, {:.0} ({} changes{under_load})",
        staleness.p50_ms, staleness.max_ms, staleness.changes
    )
}

/// How many reads the promise to readers was held against.
pub(super) fn judged(arm: &Arm) -> String {
    if arm.staleness.is_none() {
        return dash();
    }
    match arm.audit.judged_reads {
        0 => "none".to_owned(),
        reads => reads.to_string(),
    }
}

pub(super) fn behind(arm: &Arm) -> String {
    let figures = arm
        .staleness
        .as_ref()
        .and_then(|staleness| Some((staleness.modified_at_p50_ms?, staleness.modified_at_max_ms?)));
    figures.map_or_else(dash, |(p50, max)| format!("{p50:.0}, {max:.0}"))
}
