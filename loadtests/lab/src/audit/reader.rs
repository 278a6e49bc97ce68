//! Readers from outside: each polls a tenant's configuration while the load runs, and looks when it is told to afterwards.

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, Utc};
use deploy::{Client, Stack};
use futures::future::try_join_all;
use serde::Deserialize;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::events::now_ms;
use crate::{digest, http, token};

/// Time between two reads: fine enough to see staleness of a second, too rare to be load.
const EVERY: Duration = Duration::from_millis(100);

/// Least time between the reads of all readers together: where there are many, each reads more rarely.
const TOGETHER: Duration = Duration::from_millis(50);

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    /// When the read was sent, milliseconds since the Unix epoch.
    pub(crate) at_ms: u64,
    /// How long the answer took.
    pub(crate) took_ms: u64,
    pub(crate) modified_ms: u64,
    /// Digest of the `tenantInfo`; `None` where that is null.
    pub(crate) info: Option<String>,
}

impl Sighting {
    /// When the answer was there, milliseconds since the Unix epoch.
    pub(super) fn ended(&self) -> u64 {
        self.at_ms.saturating_add(self.took_ms)
    }
}

#[cfg(test)]
impl Sighting {
    /// Of values alone.
    pub(super) fn new(at_ms: u64, info: Option<&str>) -> Self {
        Self {
            at_ms,
            took_ms: 0,
            modified_ms: 0,
            info: info.map(str::to_owned),
        }
    }
}

/// The pollers, one a tenant.
#[derive(Debug)]
pub(super) struct Pollers(Vec<Poller>);

/// One of them.
#[derive(Debug)]
struct Poller {
    stop: oneshot::Sender<()>,
    latest: watch::Receiver<Option<Sighting>>,
    task: JoinHandle<anyhow::Result<Reader>>,
}

/// A reader with all that it has seen.
#[derive(Debug)]
pub(super) struct Reader {
    http: reqwest::Client,
    front: String,
    /// Of the tenant whose configuration it reads.
    pub(super) client: Client,
    token: String,
    /// In the order in which they were made, one after the other.
    pub(super) sightings: Vec<Sighting>,
    /// The last of them, for whoever waits for it.
    latest: watch::Sender<Option<Sighting>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tenant {
    modified_at: DateTime<Utc>,
    tenant_info: Option<String>,
}

/// When a reader reads.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Before its first read beside the load.
    first: Duration,
    /// Between two reads.
    every: Duration,
}

/// The turns of so many readers: they take them one after the other.
fn turns(readers: u32) -> impl Iterator<Item = Turn> {
    let every = EVERY.max(TOGETHER * readers);
    (0..readers).map(move |reader| Turn {
        first: TOGETHER * reader,
        every,
    })
}

impl Pollers {
    /// One for the tenant of each client.
    pub(super) async fn start(stack: &Stack, clients: &[Client]) -> anyhow::Result<Self> {
        let http = http::client(Duration::from_secs(30))?;
        let turns = turns(u32::try_from(clients.len())?);
        let front = format!("http://{}", stack.front());
        let pollers = clients
            .iter()
            .zip(turns)
            .map(|(client, turn)| Poller::start(&http, &front, client.clone(), turn));
        try_join_all(pollers).await.map(Self)
    }

    /// Waits until the first of them has made such a read; whether it did in time.
    pub(super) async fn see(&self, within: Duration, wanted: impl Fn(&Sighting) -> bool) -> bool {
        let Some(first) = self.0.first() else {
            return false;
        };
        let mut latest = first.latest.clone();
        let seen = latest.wait_for(|seen| seen.as_ref().is_some_and(&wanted));
        let in_time = tokio::time::timeout(within, seen).await;
        in_time.is_ok_and(|seen| seen.is_ok())
    }

    /// Ends the polling; a last read of each has been made by then. The readers are in the order of their clients.
    pub(super) async fn stop(self) -> anyhow::Result<Vec<Reader>> {
        try_join_all(self.0.into_iter().map(Poller::stop)).await
    }
}

impl Poller {
    async fn start(http: &reqwest::Client, front: &str, client: Client, turn: Turn) -> anyhow::Result<Self> {
        let (latest, seen) = watch::channel(None);
        let mut reader = Reader {
            token: token::fetch(http, front, &client).await?,
            http: http.clone(),
            front: front.to_owned(),
            client,
            sightings: Vec::new(),
            latest,
        };
        reader.read().await?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(poll(reader, turn, stopped));
        Ok(Self {
            stop,
            latest: seen,
            task,
        })
    }

    async fn stop(self) -> anyhow::Result<Reader> {
        // A poller that has ended by itself has an error to return.
        let _ = self.stop.send(());
        self.task.await.context("a reader of the audit panicked")?
    }
}

async fn poll(mut reader: Reader, turn: Turn, mut stopped: oneshot::Receiver<()>) -> anyhow::Result<Reader> {
    let mut wait = turn.first;
    loop {
        if tokio::time::timeout(wait, &mut stopped).await.is_ok() {
            reader.look().await?;
            return Ok(reader);
        }
        wait = turn.every;
        // While the system is under load or a fault a read may fail.
        if reader.read().await.is_err()
            && let Ok(token) = reader.fetch_token().await
        {
            reader.token = token;
        }
    }
}

impl Reader {
    /// One read, which must not fail, other than for a token that has become too old.
    pub(super) async fn look(&mut self) -> anyhow::Result<()> {
        let Err(error) = self.read().await else {
            return Ok(());
        };
        let who = format!("the audit's reader of {}", self.client.tenant);
        self.token = self
            .fetch_token()
            .await
            .with_context(|| format!("{who} got no token"))?;
        self.read()
            .await
            .with_context(|| format!("{who} gets no answer, after: {error:#}"))
    }

    async fn fetch_token(&self) -> anyhow::Result<String> {
        token::fetch(&self.http, &self.front, &self.client).await
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let at_ms = now_ms();
        let request = self
            .http
            .get(format!("{}/api/v1/tenants/{}", self.front, self.client.tenant));
        let tenant: Tenant = request
            .bearer_auth(&self.token)
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        let seen = Sighting {
            at_ms,
            took_ms: now_ms().saturating_sub(at_ms),
            modified_ms: u64::try_from(tenant.modified_at.timestamp_millis()).unwrap_or(0),
            info: tenant.tenant_info.as_deref().map(digest::short),
        };
        self.latest.send_replace(Some(seen.clone()));
        self.sightings.push(seen);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_take_turns_and_none_reads_more_often_than_one_alone() {
        for readers in [1, 2, 4] {
            let reads = turns(readers).flat_map(|turn| (0..3).map(move |read| turn.first + turn.every * read));
            let mut reads: Vec<Duration> = reads.collect();
            reads.sort();
            let apart = reads.windows(2).all(|pair| pair[1] - pair[0] >= TOGETHER);
            assert!(apart && reads.len() == readers as usize * 3, "{readers}: {reads:?}");
            assert!(turns(readers).all(|turn| turn.every >= EVERY));
        }
    }
}
