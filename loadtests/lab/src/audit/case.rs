//! What all witnesses say of one measurement, judged together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::database::{self, Witnesses};
use super::declared::Declaration;
use super::delivery::Delivery;
use super::ledger::Closed;
use super::reader::Sighting;
use super::writes::Writes;
use super::{Expected, seen};
use crate::facts::{AuditFile, Promise};
use crate::results::Audit;

/// Everything that is known of a measurement when its load is over.
pub(super) struct Case<'a> {
    /// URL and invariants of each database that has any.
    pub(super) databases: Vec<(String, Vec<AuditFile>)>,
    pub(super) acknowledged: &'a Closed,
    /// Of these, those up to here are of the load, milliseconds since the Unix epoch.
    pub(super) loaded_until: u64,
    /// Message id → copies.
    pub(super) delivered: &'a BTreeMap<String, u32>,
    /// What was seen of each tenant's configuration, by its key.
    pub(super) sightings: &'a BTreeMap<String, Vec<Sighting>>,
    pub(super) promises: &'a Promises,
    /// What the server declares to lose in a crash.
    pub(super) may_lose: Duration,
    pub(super) expected: &'a Expected,
}

/// What the alternatives in use declare.
#[derive(Debug, Clone, Default)]
pub(super) struct Promises {
    pub(super) touch: Promise,
    pub(super) announce: Promise,
    /// The service that announces.
    pub(super) announcer: String,
}

impl Promises {
    /// What is promised of messages, after what happened.
    pub(super) fn delivery<'a>(&'a self, expected: &'a Expected) -> Delivery<'a> {
        Delivery::by(&self.announcer, &self.announce, expected)
    }
}

impl Case<'_> {
    /// Checks every invariant.
    ///
    /// # Errors
    /// PostgreSQL does not answer, or an invariant cannot be asked.
    pub(super) async fn judge(&self) -> anyhow::Result<Audit> {
        let declaration = Declaration::of_database(self.may_lose, &self.expected.outages);
        let delivery = self.promises.delivery(self.expected);
        let touch = &self.promises.touch;
        let mut checks = Vec::new();
        let mut lost = BTreeSet::new();
        let mut lost_messages = 0;
        for (url, files) in &self.databases {
            let witnesses = Witnesses {
                acknowledged: self.acknowledged,
                delivered: self.delivered,
                rows_per_tour: self.expected.rows_per_tour,
                declaration: &declaration,
                delivery: &delivery,
            };
            let found = database::check(url, files, touch, &witnesses).await?;
            checks.extend(found.checks);
            lost.extend(found.declared);
            lost_messages += found.unannounced;
        }
        checks.extend(delivery.judge(self.delivered));

        let written = self.acknowledged.writes(&lost)?;
        let tenants = written.len();
        let meanwhile = Writes {
            acknowledged: Vec::new(),
            unanswered: self.expected.unanswered,
            undone: declaration.crashes.clone(),
            outages: self.expected.outages.clone(),
            // The service that announces a tour is the one that touches its tenant.
            writer: self.promises.announcer.clone(),
        };
        let seen = seen::judge(self.sightings, touch, written, &meanwhile, self.loaded_until);
        checks.extend(seen.checks);

        let copies = self.delivered.values();
        Ok(Audit {
            passed: checks.iter().all(|check| check.passed),
            checks,
            acknowledged: self.acknowledged.count(),
            tenants,
            may_lose_ms: declaration.may_lose.as_millis() as u64,
            declared_losses: lost.len() as u64,
            lost_messages,
            older_reads: seen.declared,
            judged_reads: seen.judged,
            promised: touch.config.clone(),
            stale_ms: seen.stale_ms,
            seen_after_ms: Vec::new(),
            behind_ms: seen.behind_ms,
            delivered: copies.clone().map(|copies| u64::from(*copies)).sum(),
            duplicates: copies.map(|copies| u64::from(copies.saturating_sub(1))).sum(),
        })
    }
}

#[cfg(test)]
mod tests;
