//! The audit: after every arm, from outside, whether the system kept what it promises.
//!
//! Three witnesses are compared: the [`ledger`] of what was acknowledged to the load, an extra queue that received
//! every message ([`messages`]), and the database, asked with the SQL that the service ships ([`database`]). A fourth,
//! the [`reader`]s, one a tenant, poll the configuration while the load runs, and one looks closely at a few [`changes`]
//! afterwards; what they saw is held against the promise tenant by tenant ([`seen`], with [`configuration`] and [`values`]).
//! [`case`] has them all together.

mod case;
mod changes;
mod configuration;
mod database;
mod declared;
mod delivery;
mod history;
mod ledger;
mod messages;
mod promised;
mod reader;
mod seen;
#[cfg(test)]
mod tests;
mod values;
mod writes;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deploy::{Client, Stack};
use load::HttpTarget;

use self::case::{Case, Promises};
pub(crate) use self::ledger::{Acknowledged, Ledger, Write};
use self::messages::Witness;
use self::reader::Pollers;
pub(crate) use self::reader::Sighting;
use crate::facts::{Cause, Facts, Promise};
use crate::results::{Audit, AuditCheck};

/// Violations shown of each invariant; all are counted.
const EXAMPLES: usize = 5;

/// A reader of one tenant reads ten times in a second; a machine that stands still may take two more.
const ENOUGH_READS: Duration = Duration::from_secs(3);

/// How long a load has to go on after the last fault was recovered from until readers are owed what was written then, and some
/// of them have read it. `promise` is that of the touch.
pub(crate) fn owed_after(promise: &Promise) -> Duration {
    writes::owed_after(promise) + ENOUGH_READS
}

/// An audit that has begun: everything that must be in place before the load.
#[derive(Debug)]
pub(crate) struct Auditor {
    ledger: Arc<Ledger>,
    witness: Witness,
    pollers: Pollers,
    /// When the last tour of the load was acknowledged, once it is over.
    loaded_until: Option<u64>,
}

/// What the auditor is told about the load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expected {
    /// Rows that one tour of the payload has in the database; `None` if payloads differ, and then the answers say it.
    pub(crate) rows_per_tour: Option<u32>,
    /// Longest time for which a request that was *not* acknowledged may have been under way; zero if there was none.
    /// Its write may be the last one, so this much is allowed for when the configuration's age is judged.
    pub(crate) unanswered: Duration,
    /// How many requests were sent again under their keys.
    pub(crate) repeated: u64,
    /// Faults meanwhile.
    pub(crate) outages: Vec<Outage>,
}

/// A fault that a part of the stack suffered. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    /// What the fault was aimed at.
    pub(crate) part: String,
    /// From its beginning until the part answered again.
    pub(crate) period: [u64; 2],
    /// When the part could not write down what it held in memory; `None` for a fault that is no crash.
    pub(crate) crash: Option<[u64; 2]>,
}

impl Outage {
    /// Of this part: felt since, answering again, and when it was crashed; milliseconds since the Unix epoch.
    pub(crate) fn new(part: &str, felt_ms: u64, back_ms: u64, crash: Option<[u64; 2]>) -> Self {
        let since = crash.map_or(felt_ms, |[began, _]| began.min(felt_ms));
        Self {
            part: part.to_owned(),
            period: [since, back_ms],
            crash,
        }
    }

    /// Whether it was aimed at this service, or at a replica of it (`tour-data-2`).
    fn is_on(&self, service: &str) -> bool {
        let rest = self.part.strip_prefix(service);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Whether it may be why a loss came about that a service declares. A server goes by two names as a target of faults: its
    /// own, and that of the link to it.
    fn is(&self, cause: Cause, service: &str) -> bool {
        match cause {
            Cause::Replica => self.crash.is_some() && self.is_on(service),
            Cause::Database => ["postgres", "db"].contains(&self.part.as_str()),
            Cause::Redis => self.part == "redis",
            Cause::Broker => ["rabbitmq", "broker"].contains(&self.part.as_str()),
            Cause::NoFault => false,
        }
    }
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
        let pollers = Pollers::start(stack, clients).await?;
        Ok(Self {
            ledger,
            witness,
            pollers,
            loaded_until: None,
        })
    }

    /// Where the load records what was acknowledged to it.
    pub(crate) fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// The load is over: what is written from here on is none of it.
    pub(crate) fn loaded(&mut self) {
        self.loaded_until = Some(self.ledger.last().map_or(0, |write| write.acked_ms));
    }

    /// Sends a request that changes the configuration of the first client's tenant. What it wrote, as recorded.
    ///
    /// # Errors
    /// It is not answered with success.
    pub(crate) async fn change(&self, request: &HttpTarget) -> anyhow::Result<Write> {
        changes::change(request, &self.ledger).await
    }

    /// Waits until the first client's reader has made such a read; whether it did in time.
    pub(crate) async fn sees(&self, within: Duration, wanted: impl Fn(&Sighting) -> bool) -> bool {
        self.pollers.see(within, wanted).await
    }

    /// Sends `changes`, each of which changes the configuration of the first client's tenant, to see how late a reader sees
    /// them; collects the witnesses, and checks every invariant. The ledger's file is removed when all hold.
    ///
    /// # Errors
    /// A change fails, or a witness cannot be asked; an invariant that does not hold is not an error but a failed check.
    pub(crate) async fn finish(
        mut self,
        stack: &Stack,
        expected: &Expected,
        changes: &[HttpTarget],
    ) -> anyhow::Result<Audit> {
        let facts = Facts::of(stack);
        let promises = Promises {
            touch: facts.promise("touch").unwrap_or_default(),
            announce: facts.promise("announce").unwrap_or_default(),
            announcer: facts.announcer().unwrap_or_default(),
        };
        if self.loaded_until.is_none() {
            self.loaded();
        }
        let mut readers = self.pollers.stop().await?;
        // The changes are of the first tenant alone, a sample: each is waited for, and every tenant is touched in the same way.
        let seen_after_ms = match readers.first_mut() {
            Some(first) => changes::observe(first, changes, &self.ledger, &promises.touch).await?,
            None => Vec::new(),
        };
        let acknowledged = self.ledger.close()?;
        let mut expected = expected.clone();
        expected.repeated += changes.iter().map(HttpTarget::repeated).sum::<u64>();
        let to_come = if promises.delivery(&expected).all_come() {
            acknowledged.tours()?
        } else {
            HashSet::new()
        };
        let delivered = self.witness.collect(to_come).await?;
        let mut sightings = BTreeMap::new();
        for mut reader in readers {
            reader.look().await?;
            sightings.insert(reader.client.tenant, reader.sightings);
        }

        let databases = facts.audits().into_iter();
        let case = Case {
            databases: databases.map(|(name, files)| (stack.postgres(&name), files)).collect(),
            acknowledged: &acknowledged,
            loaded_until: self.loaded_until.unwrap_or_default(),
            delivered: &delivered,
            sightings: &sightings,
            promises: &promises,
            may_lose: stack.may_lose()?,
            expected: &expected,
        };
        let audit = Audit {
            seen_after_ms,
            ..case.judge().await?
        };
        if audit.passed {
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
