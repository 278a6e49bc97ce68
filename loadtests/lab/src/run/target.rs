//! The load of an experiment: `POST /api/v1/tours` through the front, as the published test did.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::{Client, Stack};
use http::{Method, StatusCode};
use load::{Exchange, Failure, HttpTarget, Kind, Mix, Spread, Token, TokenSource};
use serde::Deserialize;
use uuid::Uuid;

use crate::audit::{Acknowledged, Ledger};
use crate::digest;
use crate::events::ms_of;
use crate::experiment::{ArmLoad, Experiment, TokenUse};

/// The client of the load for one tenant; its tokens are for the tenant of the shipped payload.
pub(crate) const CLIENT: &str = "rowlock-load";

/// How long an answer may take: beyond the service's own bound on waiting for a connection.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// The answer to a created tour, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    id: Uuid,
    rows: u32,
    tenant_key: String,
}

/// Requests that each create a tour of their own, under a key of its own: each user's for the tenant that it works for, with
/// a token of that tenant. Every acknowledged one is written to `ledger`, when there is one. Their share that the experiment
/// says change the tenant's configuration, the others write that of the payload.
pub(crate) fn create_tour(
    stack: &Stack,
    experiment: &Experiment,
    arm_load: &ArmLoad,
    ledger: Option<&Arc<Ledger>>,
) -> anyhow::Result<Spread> {
    let payload = payload(experiment)?;
    let numbered = clients(stack, arm_load)?.iter().zip(0..);
    let groups = numbered.map(|(client, number)| {
        let requests = Requests {
            payload: &payload,
            client,
            token_use: arm_load.token,
            retry: experiment.retry,
        };
        // Of their own: tenants do not change their configurations in step.
        let seed = experiment.seed.unwrap_or_default().wrapping_add(number);
        requests.mix(stack, experiment.changes, seed, ledger)
    });
    let groups = groups.collect::<anyhow::Result<Vec<Mix>>>()?;
    Ok(Spread::new(groups, arm_load.tenants.seats(arm_load.users))?)
}

/// The client of each tenant that somebody works for.
pub(super) fn clients<'s>(stack: &'s Stack, arm_load: &ArmLoad) -> anyhow::Result<&'s [Client]> {
    let (known, wanted) = (stack.load_clients(), arm_load.tenants.at_work(arm_load.users));
    known.get(..wanted).with_context(|| {
        format!(
            "the load works for {wanted} tenants and the stack has clients for {}",
            known.len()
        )
    })
}

/// What is written after the load, one after the other: values of their own, and twice that of the payload, a change back.
const AFTER_THE_LOAD: [Info; 5] = [
    Info::Changed,
    Info::Changed,
    Info::OfPayload,
    Info::Changed,
    Info::OfPayload,
];

/// Requests that each change the configuration of the first of [`clients`], to be made one after the other when the load is
/// over; none where the load changes nothing. They are written to `ledger`, too.
pub(super) fn changes(
    stack: &Stack,
    experiment: &Experiment,
    arm_load: &ArmLoad,
    ledger: &Arc<Ledger>,
) -> anyhow::Result<Vec<HttpTarget>> {
    after_the_load(stack, experiment, arm_load, &AFTER_THE_LOAD, ledger)
}

/// As many requests that each write a value of its own; none where the load changes nothing.
pub(super) fn last_changes(
    stack: &Stack,
    experiment: &Experiment,
    arm_load: &ArmLoad,
    count: usize,
    ledger: &Arc<Ledger>,
) -> anyhow::Result<Vec<HttpTarget>> {
    after_the_load(stack, experiment, arm_load, &vec![Info::Changed; count], ledger)
}

fn after_the_load(
    stack: &Stack,
    experiment: &Experiment,
    arm_load: &ArmLoad,
    infos: &[Info],
    ledger: &Arc<Ledger>,
) -> anyhow::Result<Vec<HttpTarget>> {
    let Some(client) = clients(stack, arm_load)?.first().filter(|_| experiment.changes > 0.0) else {
        return Ok(Vec::new());
    };
    let payload = payload(experiment)?;
    let requests = Requests {
        payload: &payload,
        client,
        token_use: arm_load.token,
        retry: Some(TIMEOUT),
    };
    let each = infos.iter();
    each.map(|info| requests.build(stack, *info, Some(ledger))).collect()
}

fn payload(experiment: &Experiment) -> anyhow::Result<Payload> {
    let path = experiment.payload_path();
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Payload::parse(&text).with_context(|| format!("{} is not a tour", path.display()))
}

/// Into how many parts a share of the requests can be divided.
const SHARES: u32 = 1000;

/// What a request writes as `tenantInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Info {
    /// What the payload says: the same each time.
    OfPayload,
    /// A value of its own.
    Changed,
}

/// Requests of one tenant.
struct Requests<'a> {
    payload: &'a Payload,
    client: &'a Client,
    token_use: TokenUse,
    retry: Option<Duration>,
}

impl Requests<'_> {
    /// Those that change the configuration, by their share, and the others.
    fn mix(&self, stack: &Stack, changes: f64, seed: u64, ledger: Option<&Arc<Ledger>>) -> anyhow::Result<Mix> {
        let changing = (changes * f64::from(SHARES)).round() as u32;
        let mut parts = Vec::new();
        for (weight, info) in [(SHARES - changing, Info::OfPayload), (changing, Info::Changed)] {
            if weight > 0 {
                parts.push((weight, self.build(stack, info, ledger)?));
            }
        }
        Ok(Mix::new(parts, seed)?)
    }

    fn build(&self, stack: &Stack, info: Info, ledger: Option<&Arc<Ledger>>) -> anyhow::Result<HttpTarget> {
        let front = format!("http://{}", stack.front());
        let mut builder = HttpTarget::builder(Method::POST, format!("{front}/api/v1/tours").parse()?)
            .header("content-type", "application/json")
            .header("idempotency-key", "{{uuid}}")
            .body(self.payload.template(info, &self.client.tenant))
            .token(self.token(&front)?)
            .expect_status(StatusCode::CREATED)
            .timeout(TIMEOUT);
        if let Some(bound) = self.retry {
            builder = builder.repeat(bound);
        }
        if let Some(ledger) = ledger {
            let (ledger, tenant) = (Arc::clone(ledger), self.client.tenant.clone());
            let of_payload = self.payload.info().as_deref().map(digest::short);
            builder = builder.on_response(move |exchange| {
                let info = match info {
                    Info::OfPayload => of_payload.clone(),
                    Info::Changed => Some(digest::short(&changed_info(&exchange.uuid.to_string()))),
                };
                record(&ledger, exchange, &tenant, info)
            });
        }
        Ok(builder.build()?)
    }

    fn token(&self, front: &str) -> anyhow::Result<Token> {
        let source = TokenSource {
            url: format!("{front}/oauth2/token").parse()?,
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.clone(),
        };
        Ok(match self.token_use {
            TokenUse::None => Token::None,
            TokenUse::Once => Token::Once(source),
            TokenUse::PerIteration => Token::PerIteration { source, timed: false },
            TokenUse::PerIterationTimed => Token::PerIteration { source, timed: true },
        })
    }
}

/// A tour as it is sent.
struct Payload(serde_json::Value);

impl Payload {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut tour: serde_json::Value = serde_json::from_str(text)?;
        let number = tour.get_mut("tourNumber").context("it has no `tourNumber`")?;
        *number = "T-{{uuid}}".into();
        let key = tour["tenantConfig"]["tenantKey"].as_str();
        key.filter(|key| !key.is_empty())
            .context("it has no `tenantKey` in `tenantConfig`")?;
        Ok(Self(tour))
    }

    fn info(&self) -> Option<String> {
        self.0["tenantConfig"]["tenantInfo"].as_str().map(str::to_owned)
    }

    /// The body with a tour number that differs from request to request, for this tenant: its key stands wherever the payload's
    /// own tenant is named in the configuration.
    fn template(&self, info: Info, tenant: &str) -> String {
        let mut tour = self.0.clone();
        let config = &mut tour["tenantConfig"];
        let own = config["tenantKey"].as_str().unwrap_or_default().to_owned();
        for member in ["tenant", "tenantKey"] {
            if let Some(text) = config[member].as_str() {
                config[member] = text.replace(&own, tenant).into();
            }
        }
        if info == Info::Changed {
            config["tenantInfo"] = changed_info("{{uuid}}").into();
        }
        tour.to_string()
    }
}

fn changed_info(uuid: &str) -> String {
    format!("changed by {uuid}")
}

/// Something to read from a service that changes nothing.
pub(super) struct Reading {
    pub(super) path: String,
    pub(super) with_token: bool,
}

/// What to ask a service for to see whether it answers; `None` for one that is not known here.
pub(super) fn reading(service: &str, client: &deploy::Client) -> Option<Reading> {
    match service {
        "user" => Some(Reading {
            path: "/oauth2/jwks".to_owned(),
            with_token: false,
        }),
        "tour-data" => Some(Reading {
            path: format!("/api/v1/tenants/{}", client.tenant),
            with_token: true,
        }),
        _ => None,
    }
}

fn record(ledger: &Ledger, exchange: &Exchange<'_>, tenant: &str, info: Option<String>) -> Result<(), Failure> {
    if exchange.status != StatusCode::CREATED {
        return Ok(());
    }
    let created: Created = serde_json::from_slice(exchange.body)
        .map_err(|error| Failure::new(Kind::Body, format!("a 201 without a tour's id and rows: {error}")))?;
    ledger.record(&Acknowledged {
        tour_id: created.id,
        rows: created.rows,
        idempotency_key: Some(exchange.uuid.to_string()),
        tenant: tenant.to_owned(),
        info,
        sent_at_ms: ms_of(exchange.sent_at),
        acked_at_ms: ms_of(exchange.acked_at),
    });
    if created.tenant_key == tenant {
        return Ok(());
    }
    let told = format!("a 201 for the tenant {} to a request of {tenant}", created.tenant_key);
    Err(Failure::new(Kind::Body, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &str =
        r#"{"tourNumber":"BT-1","tenantConfig":{"tenant":"Beverages A","tenantKey":"A","tenantInfo":null}}"#;

    #[test]
    fn the_tour_number_varies_and_so_does_what_is_changed() {
        let payload = Payload::parse(PAYLOAD).unwrap();
        assert_eq!(
            payload.template(Info::OfPayload, "A"),
            PAYLOAD.replace("BT-1", "T-{{uuid}}")
        );
        assert_eq!(
            payload.template(Info::Changed, "A"),
            r#"{"tourNumber":"T-{{uuid}}","tenantConfig":{"tenant":"Beverages A","tenantKey":"A","tenantInfo":"changed by {{uuid}}"}}"#
        );
        for (taken, told) in [("tourNumber", "tourNumber"), ("tenantKey", "tenantKey")] {
            let error = Payload::parse(&PAYLOAD.replace(taken, "other")).err().unwrap();
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn a_tour_of_another_tenant_is_under_its_key_and_its_name() {
        let payload = Payload::parse(PAYLOAD).unwrap();
        let other = payload.template(Info::OfPayload, "TENANT01");
        assert!(
            other.contains(r#""tenant":"Beverages TENANT01","tenantKey":"TENANT01""#),
            "{other}"
        );
    }

    #[test]
    fn a_201_for_another_tenant_is_recorded_and_a_failure() {
        let path = std::env::temp_dir().join(format!("rowlock-target-{}.csv", std::process::id()));
        let ledger = Ledger::create(&path).unwrap();
        let answer = |tenant: &str| format!(r#"{{"id":"{}","rows":87,"tenantKey":"{tenant}"}}"#, Uuid::nil());
        let judge = |body: &str| {
            let now = std::time::SystemTime::now();
            let exchange = Exchange {
                status: StatusCode::CREATED,
                headers: &http::HeaderMap::new(),
                body: body.as_bytes(),
                uuid: Uuid::nil(),
                sequence: 1,
                sent_at: now,
                acked_at: now,
            };
            record(&ledger, &exchange, "A", None)
        };
        judge(&answer("A")).unwrap();
        let failure = judge(&answer("B")).unwrap_err();
        assert_eq!(failure.kind, Kind::Body);
        assert!(failure.detail.contains("the tenant B"), "{}", failure.detail);
        let closed = ledger.close().unwrap();
        assert_eq!(closed.count(), 2);
        closed.remove().unwrap();
    }
}
