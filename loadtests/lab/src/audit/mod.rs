//! The audit: after every arm, from outside, whether the system kept what it promises.
//!
//! Three witnesses are compared: the [`ledger`] of what was acknowledged to the load, an extra queue that received
//! every message ([`messages`]), and the database, asked with the SQL that the service ships ([`database`]). A fourth,
//! the [`reader`]s, one a tenant, poll the configuration while the load runs; what they saw is held against the promise
//! ([`seen`]).

mod database;
mod declared;
mod ledger;
mod messages;
mod reader;
mod seen;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deploy::{Client, Stack};

use self::database::Witnesses;
use self::declared::Declaration;
pub(crate) use self::ledger::{Acknowledged, Ledger};
use self::messages::Witness;
use self::reader::{Readers, Writes};
use crate::facts::Facts;
use crate::results::{Audit, AuditCheck};

/// Violations shown of each invariant; all are counted.
const EXAMPLES: usize = 5;

/// An audit that has begun: everything that must be in place before the load.
#[derive(Debug)]
pub(crate) struct Auditor {
    ledger: Arc<Ledger>,
    witness: Witness,
    readers: Readers,
}

/// What the auditor is told about the load.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// Rows that one tour of the payload has in the database; `None` if payloads differ, and then the answers say it.
    pub(crate) rows_per_tour: Option<u32>,
    /// Longest time for which a request that was *not* acknowledged may have been under way; zero if there was none.
    /// Its write may be the last one, so this much is allowed for when the configuration's age is judged.
    pub(crate) unanswered: Duration,
    /// Crashes of parts of the stack meanwhile.
    pub(crate) crashes: Vec<Crash>,
}

/// A part could not write down what it held in memory.
#[derive(Debug, Clone)]
pub(crate) struct Crash {
    /// What the fault was aimed at.
    pub(crate) part: String,
    /// The time in which that was, milliseconds since the Unix epoch.
    pub(crate) period: [u64; 2],
}

impl Auditor {
    /// Binds the extra queue, opens the ledger in `folder` under the name `label` and starts a reader as each of `clients`, one
    /// a tenant that is written to. With `crash` the witnesses outlive a crash of the broker.
    ///
    /// # Errors
    /// The broker or the front does not answer, or the ledger cannot be written.
    pub(crate) async fn begin(
        stack: &Stack,
        clients: &[Client],
        folder: &Path,
        label: &str,
        crash: bool,
    ) -> anyhow::Result<Self> {
        let facts = Facts::of(stack);
        let ledger = Arc::new(Ledger::create(&folder.join(format!("acknowledged-{label}.csv")))?);
        let witness = Witness::bind(&stack.amqp(), &facts.messages(), crash).await?;
        let readers = Readers::start(stack, clients).await?;
        Ok(Self {
            ledger,
            witness,
            readers,
        })
    }

    /// Where the load records what was acknowledged to it.
    pub(crate) fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Collects the witnesses and checks every invariant. The ledger's file is removed when all hold.
    ///
    /// # Errors
    /// A witness cannot be asked; an invariant that does not hold is not an error but a failed check.
    pub(crate) async fn finish(self, stack: &Stack, expected: &Expected) -> anyhow::Result<Audit> {
        let facts = Facts::of(stack);
        let promise = facts.promise("touch").unwrap_or_default();
        let delivered = self.witness.collect().await?;
        let acknowledged = self.ledger.close()?;

        let declaration = Declaration::of_database(stack.may_lose()?, &expected.crashes);
        let mut checks = Vec::new();
        let mut lost = BTreeSet::new();
        for (name, files) in facts.audits() {
            let witnesses = Witnesses {
                acknowledged: &acknowledged,
                delivered: &delivered,
                rows_per_tour: expected.rows_per_tour,
                declaration: &declaration,
            };
            let found = database::check(&stack.postgres(&name), &files, &promise, &witnesses).await?;
            checks.extend(found.checks);
            lost.extend(found.declared);
        }
        let writes = acknowledged.writes(&lost)?;
        let seen = seen::judge(
            &self.readers.finish().await?,
            &promise,
            &writes,
            &Writes {
                acknowledged: Vec::new(),
                unanswered: expected.unanswered,
                undone: declaration.crashes.iter().map(|crash| crash.period[0]).collect(),
                crashed: !expected.crashes.is_empty(),
            },
        );
        checks.extend(seen.checks);

        let passed = checks.iter().all(|check| check.passed);
        let audit = Audit {
            passed,
            checks,
            acknowledged: acknowledged.count(),
            tenants: writes.len(),
            may_lose_ms: declaration.may_lose.as_millis() as u64,
            declared_losses: lost.len() as u64,
            older_reads: seen.declared,
            stale_ms: seen.stale_ms,
            delivered: delivered.values().map(|copies| u64::from(*copies)).sum(),
            duplicates: delivered
                .values()
                .map(|copies| u64::from(copies.saturating_sub(1)))
                .sum(),
        };
        if passed {
            acknowledged.remove()?;
        }
        Ok(audit)
    }
}

/// An invariant with its violations, as `subject: detail`.
fn verdict(name: &str, says: &str, violations: u64, examples: Vec<String>) -> AuditCheck {
    AuditCheck {
        name: name.to_owned(),
        says: says.to_owned(),
        passed: violations == 0,
        violations,
        examples,
    }
}
