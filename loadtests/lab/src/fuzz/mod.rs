//! Mutated payloads, sent to a real service: whatever a body holds, the answer is no 5xx, and the database holds whole
//! tours only.
//!
//! Input `n` of a seed is the same at every run, so that what broke a service can be sent again by `--seed` and its
//! number.

mod bytes;
mod input;
mod structure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use deploy::Stack;
use futures::future::try_join_all;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use uuid::Uuid;

use self::input::Input;
use crate::audit::{Acknowledged, Auditor, Expected, Ledger};
use crate::digest;
use crate::events::now_ms;
use crate::http;
use crate::results::AuditCheck;
use crate::run::CLIENT;
use crate::token;

/// Connections that send at the same time.
const CONNECTIONS: usize = 8;
/// A request that is not answered within this is counted as not answered at all.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Well below the lifetime of a token.
const TOKEN_AGE: Duration = Duration::from_secs(120);

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// Ends after so many inputs, if given.
    pub(crate) inputs: Option<u64>,
    /// Ends after this time, if given.
    pub(crate) duration: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) seed: u64,
    pub(crate) inputs: u64,
    /// Answers by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Inputs without an answer.
    pub(crate) unanswered: u64,
    /// 201s that counted other rows than the input has.
    pub(crate) miscounted: u64,
    /// Inputs that were answered wrongly, one file each.
    pub(crate) kept: Vec<PathBuf>,
    /// Invariants of the database and the messages afterwards.
    pub(crate) audit: Vec<AuditCheck>,
}

impl Findings {
    /// Answers that no input should get, missing ones included.
    pub(crate) fn bad(&self) -> u64 {
        let failed = self.statuses.range(500..).map(|(_, count)| count).sum::<u64>();
        failed + self.unanswered + self.miscounted
    }
}

/// Sends mutations of the shipped payload through the front of `stack` until the options or `stop` say that it is enough.
/// What was answered wrongly is kept in `folder`.
///
/// # Errors
/// The stack gives no token, or the audit cannot be made.
pub(crate) async fn run(stack: &Stack, options: Options, folder: &Path, stop: &AtomicBool) -> anyhow::Result<Findings> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let payload = deploy::root().join("loadtests/payloads/create-tour.json");
    let text = std::fs::read(&payload).with_context(|| format!("cannot read {}", payload.display()))?;
    let client = stack
        .client(CLIENT)
        .with_context(|| format!("the stack has no client `{CLIENT}`"))?;
    let http = http::client(TIMEOUT)?;
    let auditor = Auditor::begin(stack, std::slice::from_ref(&client), folder, "fuzz", false).await?;
    let sender = Sender {
        http,
        front: format!("http://{}", stack.front()),
        client,
        payload: serde_json::from_slice(&text)?,
        options,
        until: options.duration.map(|duration| Instant::now() + duration),
        next: AtomicU64::new(0),
        folder,
        ledger: auditor.ledger(),
        token: Mutex::new(None),
        seen: Mutex::new(Seen::default()),
    };
    try_join_all((0..CONNECTIONS).map(|_| sender.send_all(stop))).await?;
    let seen = sender.seen.into_inner();
    let audit = auditor
        .finish(stack, &Expected::default(), &[])
        .await
        .context("the audit could not be made")?;
    Ok(Findings {
        seed: options.seed,
        inputs: seen.statuses.values().sum::<u64>() + seen.unanswered,
        statuses: seen.statuses,
        unanswered: seen.unanswered,
        miscounted: seen.miscounted,
        kept: seen.kept,
        audit: audit.checks,
    })
}

/// What all connections share.
struct Sender<'a> {
    http: reqwest::Client,
    front: String,
    client: deploy::Client,
    payload: Value,
    options: Options,
    until: Option<Instant>,
    next: AtomicU64,
    folder: &'a Path,
    ledger: Arc<Ledger>,
    token: Mutex<Option<(Instant, String)>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    statuses: BTreeMap<u16, u64>,
    unanswered: u64,
    miscounted: u64,
    kept: Vec<PathBuf>,
}

/// The answer to a created tour, as far as it matters here.
#[derive(Deserialize)]
struct Created {
    id: Uuid,
    rows: u32,
}

impl Sender<'_> {
    async fn send_all(&self, stop: &AtomicBool) -> anyhow::Result<()> {
        while !stop.load(Ordering::Relaxed) && self.until.is_none_or(|until| Instant::now() < until) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.options.inputs.is_some_and(|inputs| number >= inputs) {
                break;
            }
            self.send(number).await?;
        }
        Ok(())
    }

    async fn send(&self, number: u64) -> anyhow::Result<()> {
        let input = Input::new(&self.payload, self.options.seed, number);
        let mut request = self
            .http
            .post(format!("{}/api/v1/tours", self.front))
            .bearer_auth(self.bearer().await?)
            .header("content-type", input.content_type)
            .body(input.body.clone());
        if let Some(key) = &input.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let sent_at_ms = now_ms();
        let answer = async {
            let response = request.send().await?;
            Ok::<_, reqwest::Error>((response.status(), response.bytes().await?))
        };
        let (status, body) = match answer.await {
            Ok(answer) => answer,
            Err(error) => {
                let mut seen = self.seen.lock().await;
                seen.unanswered += 1;
                return self.keep(
                    &mut seen,
                    number,
                    &input,
                    &format!("unanswered: {:#}", anyhow::Error::new(error)),
                );
            }
        };
        let mut seen = self.seen.lock().await;
        *seen.statuses.entry(status.as_u16()).or_default() += 1;
        if status.is_server_error() {
            let told = String::from_utf8_lossy(&body);
            return self.keep(&mut seen, number, &input, &format!("{status}: {told}"));
        }
        if status != StatusCode::CREATED {
            return Ok(());
        }
        let created: Created = serde_json::from_slice(&body).context("a 201 without a tour's id and rows")?;
        self.ledger.record(&Acknowledged {
            tour_id: created.id,
            rows: created.rows,
            idempotency_key: input.idempotency_key.clone(),
            tenant: self.client.tenant.clone(),
            info: input.tenant_info().as_deref().map(digest::short),
            sent_at_ms,
            acked_at_ms: now_ms(),
        });
        match input.rows() {
            Some(rows) if rows == created.rows as usize => Ok(()),
            rows => {
                seen.miscounted += 1;
                let text = format!("201 with {} rows for a body that has {rows:?}", created.rows);
                self.keep(&mut seen, number, &input, &text)
            }
        }
    }

    /// A token that is not about to end.
    async fn bearer(&self) -> anyhow::Result<String> {
        let mut token = self.token.lock().await;
        if let Some((since, token)) = &*token
            && since.elapsed() < TOKEN_AGE
        {
            return Ok(token.clone());
        }
        let fresh = token::fetch(&self.http, &self.front, &self.client).await?;
        *token = Some((Instant::now(), fresh.clone()));
        Ok(fresh)
    }

    fn keep(&self, seen: &mut Seen, number: u64, input: &Input, why: &str) -> anyhow::Result<()> {
        let path = self
            .folder
            .join(format!("seed-{}-input-{number}.json", self.options.seed));
        std::fs::write(&path, &input.body).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{}: {why}", path.display());
        seen.kept.push(path);
        Ok(())
    }
}
