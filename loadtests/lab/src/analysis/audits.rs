//! The audits of an arm's rounds as one.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use crate::results::{Audit, AuditCheck};

/// A check has passed when it passed in every round.
pub(super) fn merge(runs: &[&Evidence]) -> Audit {
    let mut checks: BTreeMap<String, AuditCheck> = BTreeMap::new();
    let mut whole = Audit {
        passed: true,
        ..Audit::default()
    };
    for run in runs.iter().filter(|run| run.load.is_some()) {
        let Some(audit) = &run.audit else {
            whole.passed = false;
            continue;
        };
        whole.passed &= audit.passed;
        whole.acknowledged += audit.acknowledged;
        whole.tenants = whole.tenants.max(audit.tenants);
        whole.delivered += audit.delivered;
        whole.duplicates += audit.duplicates;
        whole.may_lose_ms = whole.may_lose_ms.max(audit.may_lose_ms);
        whole.declared_losses += audit.declared_losses;
        whole.judged_reads += audit.judged_reads;
        whole.lost_messages += audit.lost_messages;
        whole.older_reads += audit.older_reads;
        whole.promised.clone_from(&audit.promised);
        whole.stale_ms.extend(&audit.stale_ms);
        for check in &audit.checks {
            let all = checks.entry(check.name.clone()).or_insert_with(|| AuditCheck {
                violations: 0,
                examples: Vec::new(),
                passed: true,
                ..check.clone()
            });
            all.passed &= check.passed;
            all.violations += check.violations;
            all.examples
                .extend(check.examples.iter().take(5 - all.examples.len().min(5)).cloned());
        }
    }
    whole.checks = checks.into_values().collect();
    whole
}
