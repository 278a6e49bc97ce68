//! Readers from outside: each polls a tenant's configuration while the load runs; what it saw is held against the promise.
//!
//! A change is due when its request has been acknowledged. What a read must show at least is computed without knowing
//! the service's clock: the last commit before the read was that of some request whose acknowledgement came no earlier
//! than the latest sending among those acknowledged before the read; so `modifiedAt` is at least the earliest sending
//! among these. This holds for last-writer-wins too, where the clock is read before the lock is waited for.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use deploy::{Client, Stack};
use futures::future::try_join_all;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::ledger::Write;
use super::{EXAMPLES, verdict};
use crate::digest;
use crate::events::now_ms;
use crate::facts::Promise;
use crate::results::AuditCheck;
use crate::token;

/// Time between two reads: fine enough to see staleness of a second, too rare to be load.
const EVERY: Duration = Duration::from_millis(250);

/// Least time between the reads of all readers together: where there are many, each reads more rarely.
const TOGETHER: Duration = Duration::from_millis(50);

/// Allowed between the lab's clock and PostgreSQL's microseconds truncated to milliseconds.
const ROUNDING_MS: u64 = 2;

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sighting {
    /// When the read was sent, milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
    modified_ms: u64,
    /// Digest of the `tenantInfo`; `None` where that is null.
    pub(super) info: Option<String>,
}

#[cfg(test)]
impl Sighting {
    /// Of values alone.
    pub(super) fn new(at_ms: u64, info: Option<&str>) -> Self {
        Self {
            at_ms,
            modified_ms: 0,
            info: info.map(str::to_owned),
        }
    }
}

/// The pollers; [`Readers::finish`] has each make a last read and returns them all.
#[derive(Debug)]
pub(super) struct Readers(Vec<Reader>);

/// One of them.
#[derive(Debug)]
struct Reader {
    /// Key of the tenant whose configuration it reads.
    tenant: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<Vec<Sighting>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    modified_at: DateTime<Utc>,
    tenant_info: Option<String>,
}

impl Readers {
    /// One for the tenant of each client.
    pub(super) async fn start(stack: &Stack, clients: &[Client]) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build()?;
        let every = EVERY.max(TOGETHER * u32::try_from(clients.len())?);
        let readers = clients.iter().map(|client| {
            let session = Session {
                http: http.clone(),
                front: format!("http://{}", stack.front()),
                client: client.clone(),
            };
            Reader::start(session, every)
        });
        try_join_all(readers).await.map(Self)
    }

    /// What each saw, by its tenant's key.
    pub(super) async fn finish(self) -> anyhow::Result<BTreeMap<String, Vec<Sighting>>> {
        let finished = self.0.into_iter().map(Reader::finish);
        Ok(try_join_all(finished).await?.into_iter().collect())
    }
}

impl Reader {
    async fn start(session: Session, every: Duration) -> anyhow::Result<Self> {
        let tenant = session.client.tenant.clone();
        let first = session.read(&session.token().await?).await?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(poll(session, every, first, stopped));
        Ok(Self { tenant, stop, task })
    }

    async fn finish(self) -> anyhow::Result<(String, Vec<Sighting>)> {
        // A poller that has ended by itself has an error to return.
        let _ = self.stop.send(());
        let sightings = self.task.await.context("a reader of the audit panicked")?;
        let sightings = sightings.with_context(|| format!("the audit's reader of {}", self.tenant))?;
        Ok((self.tenant, sightings))
    }
}

struct Session {
    http: reqwest::Client,
    front: String,
    client: Client,
}

impl Session {
    async fn token(&self) -> anyhow::Result<String> {
        token::fetch(&self.http, &self.front, &self.client).await
    }

    async fn read(&self, token: &str) -> anyhow::Result<Sighting> {
        let at_ms = now_ms();
        let request = self
            .http
            .get(format!("{}/api/v1/tenants/{}", self.front, self.client.tenant));
        let tenant: Tenant = request
            .bearer_auth(token)
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        let modified_ms = u64::try_from(tenant.modified_at.timestamp_millis()).unwrap_or(0);
        Ok(Sighting {
            at_ms,
            modified_ms,
            info: tenant.tenant_info.as_deref().map(digest::short),
        })
    }
}

async fn poll(
    session: Session,
    every: Duration,
    first: Sighting,
    mut stopped: oneshot::Receiver<()>,
) -> anyhow::Result<Vec<Sighting>> {
    let mut sightings = vec![first];
    let mut token = session.token().await?;
    loop {
        let last = tokio::time::timeout(every, &mut stopped).await.is_ok();
        match session.read(&token).await {
            Ok(sighting) => sightings.push(sighting),
            // While the system is under load or a fault a read may fail; the last one must not.
            Err(_) if !last => token = session.token().await.unwrap_or(token),
            Err(error) => {
                token = session.token().await.context("the audit's last read got no token")?;
                sightings.push(
                    session
                        .read(&token)
                        .await
                        .with_context(|| format!("last read, after: {error:#}"))?,
                );
            }
        }
        if last {
            return Ok(sightings);
        }
    }
}

/// What was written while a reader read.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    /// Every acknowledged one that was not undone.
    pub(super) acknowledged: Vec<Write>,
    /// Longest time for which a request that was not acknowledged may have been under way.
    pub(super) unanswered: Duration,
    /// When the last writes were undone, as the server declares that they may be: by a crash.
    pub(super) undone: Vec<u64>,
    /// Crashes of any part, in which a touch may lose what it declares.
    pub(super) crashed: bool,
}

/// Judges what was seen.
pub(super) fn judge(sightings: &[Sighting], promise: &Promise, writes: &Writes) -> Vec<AuditCheck> {
    let mut checks = Vec::new();
    if promise.config == "exact" {
        let slack = u64::try_from(writes.unanswered.as_millis())
            .unwrap_or(u64::MAX)
            .saturating_add(ROUNDING_MS);
        let stale = sightings.iter().filter_map(|seen| {
            let due = due(seen.at_ms, &writes.acknowledged)?.saturating_sub(slack);
            (seen.modified_ms < due).then(|| format!("read at {}: {} ms too old", seen.at_ms, due - seen.modified_ms))
        });
        checks.push(summed(
            "reader-sees-every-change",
            "A read after a 201 shows its change of the configuration.",
            stale,
        ));
    }
    if promise.config == "unwritten" {
        let first = sightings.first().map(|seen| seen.modified_ms);
        let changed = sightings.iter().filter(|seen| Some(seen.modified_ms) != first);
        let changed = changed.map(|seen| format!("read at {}: modifiedAt moved to {}", seen.at_ms, seen.modified_ms));
        checks.push(summed(
            "reader-sees-no-change",
            "The configuration is never written.",
            changed,
        ));
    }
    if promise.modified_at == "monotone" {
        let backwards = sightings
            .windows(2)
            .filter(|pair| pair[1].modified_ms < pair[0].modified_ms)
            .filter(|pair| {
                !writes
                    .undone
                    .iter()
                    .any(|at| (pair[0].at_ms..=pair[1].at_ms).contains(at))
            })
            .map(|pair| {
                format!(
                    "read at {}: modifiedAt went back by {} ms",
                    pair[1].at_ms,
                    pair[0].modified_ms - pair[1].modified_ms
                )
            });
        checks.push(summed(
            "modified-at-is-monotone",
            "modifiedAt never goes backwards for a reader.",
            backwards,
        ));
    }
    checks
}

/// Earliest `modifiedAt` that a read sent at `at_ms` may show; `None` before the first acknowledgement.
fn due(at_ms: u64, writes: &[Write]) -> Option<u64> {
    let latest_sent = latest_sent(at_ms, writes)?;
    let overlapping = writes.iter().filter(|write| write.acked_ms >= latest_sent);
    overlapping.map(|write| write.sent_ms).min()
}

/// The latest sending among the writes that were acknowledged before `at_ms`: whoever was acknowledged earlier than that
/// was overwritten.
pub(super) fn latest_sent(at_ms: u64, writes: &[Write]) -> Option<u64> {
    let done = writes.iter().filter(|write| write.acked_ms < at_ms);
    done.map(|write| write.sent_ms).max()
}

pub(super) fn summed(name: &str, says: &str, violations: impl Iterator<Item = String>) -> AuditCheck {
    let violations: Vec<String> = violations.collect();
    let count = violations.len() as u64;
    verdict(name, says, count, violations.into_iter().take(EXAMPLES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(config: &str, modified_at: &str) -> Promise {
        Promise {
            config: config.into(),
            modified_at: modified_at.into(),
            kept: "row".into(),
            ..Promise::default()
        }
    }

    fn seen(at_ms: u64, modified_ms: u64) -> Sighting {
        Sighting {
            at_ms,
            modified_ms,
            info: None,
        }
    }

    fn writes<const N: usize>(times: [(u64, u64); N]) -> Vec<Write> {
        let write = |(sent_ms, acked_ms)| Write {
            sent_ms,
            acked_ms,
            info: None,
        };
        times.map(write).to_vec()
    }

    #[test]
    fn an_exact_configuration_may_show_any_overlapping_writer_but_nothing_older() {
        // Two overlapping requests and one long done: whichever of the two committed last, its clock is at least 100.
        let times = writes([(10, 50), (100, 300), (120, 310)]);
        assert_eq!(due(400, &times), Some(100));
        let exact = promise("exact", "last-writer-wins");
        let mut writes = Writes {
            acknowledged: times,
            ..Writes::default()
        };
        let fresh = judge(&[seen(400, 100)], &exact, &writes);
        assert!(fresh[0].passed, "{fresh:?}");
        let stale = judge(&[seen(400, 50)], &exact, &writes);
        assert!(!stale[0].passed && stale[0].violations == 1, "{stale:?}");
        writes.unanswered = Duration::from_secs(1);
        let allowed = judge(&[seen(400, 50)], &exact, &writes);
        assert!(
            allowed[0].passed,
            "an unanswered request may have written last: {allowed:?}"
        );
    }

    #[test]
    fn nothing_is_due_before_the_first_acknowledgement() {
        assert_eq!(due(40, &writes([(10, 50)])), None);
    }

    #[test]
    fn going_backwards_breaks_only_a_monotone_promise() {
        let sightings = [seen(1, 10), seen(2, 8), seen(3, 12)];
        let mut writes = Writes::default();
        let monotone = judge(&sightings, &promise("eventual(1s)", "monotone"), &writes);
        assert!(
            !monotone[0].passed && monotone[0].examples[0].contains("went back by 2 ms"),
            "{monotone:?}"
        );
        assert!(judge(&sightings, &promise("eventual(1s)", "last-writer-wins"), &writes).is_empty());
        writes.undone = vec![2];
        let undone = judge(&sightings, &promise("eventual(1s)", "monotone"), &writes);
        assert!(
            undone[0].passed,
            "a crash that may undo writes came between: {undone:?}"
        );
    }

    #[test]
    fn a_write_breaks_the_promise_of_an_unchanged_configuration() {
        let unwritten = promise("unwritten", "none");
        let checks = judge(&[seen(1, 10), seen(2, 11)], &unwritten, &Writes::default());
        assert!(!checks[0].passed);
        assert!(judge(&[seen(1, 10), seen(2, 10)], &unwritten, &Writes::default())[0].passed);
    }
}
