//! The load of an experiment: `POST /api/v1/tours` through the front, as the published test did.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use http::{Method, StatusCode};
use load::{Exchange, Failure, HttpTarget, Kind, Mix, Token, TokenSource};
use serde::Deserialize;
use uuid::Uuid;

use crate::audit::{Acknowledged, Ledger};
use crate::digest;
use crate::events::ms_of;
use crate::experiment::{Experiment, TokenUse};

/// The client of the load; its tokens are for the tenant of the shipped payload.
pub(crate) const CLIENT: &str = "rowlock-load";

/// How long an answer may take: beyond the service's own bound on waiting for a connection.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// The answer to a created tour, as far as it matters here.
#[derive(Deserialize)]
struct Created {
    id: Uuid,
    rows: u32,
}

/// Requests that each create a tour of their own, under a key of its own. Every acknowledged one is written to
/// `ledger`, when there is one. Their share that the experiment says change the tenant's configuration, the others write
/// that of the payload.
pub(crate) fn create_tour(
    stack: &Stack,
    experiment: &Experiment,
    token_use: TokenUse,
    ledger: Option<&Arc<Ledger>>,
) -> anyhow::Result<Mix> {
    let payload = payload(experiment)?;
    let client = client(stack)?;
    let changing = (experiment.changes * f64::from(SHARES)).round() as u32;
    let mut parts = Vec::new();
    for (weight, info) in [(SHARES - changing, Info::OfPayload), (changing, Info::Changed)] {
        if weight > 0 {
            let request = Requests {
                payload: &payload,
                info,
                client: &client,
                token_use,
                retry: experiment.retry,
            };
            parts.push((weight, request.build(stack, ledger)?));
        }
    }
    Ok(Mix::new(parts, experiment.seed.unwrap_or_default())?)
}

/// What is written after the load, one after the other: values of their own, and twice that of the payload, a change back.
const AFTER_THE_LOAD: [Info; 5] = [
    Info::Changed,
    Info::Changed,
    Info::OfPayload,
    Info::Changed,
    Info::OfPayload,
];

/// Requests that each change the tenant's configuration, to be made one after the other when the load is over; none where the
/// load changes nothing. They are written to `ledger`, too.
pub(super) fn changes(
    stack: &Stack,
    experiment: &Experiment,
    token_use: TokenUse,
    ledger: &Arc<Ledger>,
) -> anyhow::Result<Vec<HttpTarget>> {
    if experiment.changes == 0.0 {
        return Ok(Vec::new());
    }
    let payload = payload(experiment)?;
    let client = client(stack)?;
    let request = |info: &Info| {
        let request = Requests {
            payload: &payload,
            info: *info,
            client: &client,
            token_use,
            retry: Some(TIMEOUT),
        };
        request.build(stack, Some(ledger))
    };
    AFTER_THE_LOAD.iter().map(request).collect()
}

fn payload(experiment: &Experiment) -> anyhow::Result<Payload> {
    let path = experiment.payload_path();
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Payload::parse(&text).with_context(|| format!("{} is not a tour", path.display()))
}

fn client(stack: &Stack) -> anyhow::Result<deploy::Client> {
    stack
        .client(CLIENT)
        .with_context(|| format!("the stack has no client `{CLIENT}`"))
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

/// Requests of one kind.
struct Requests<'a> {
    payload: &'a Payload,
    info: Info,
    client: &'a deploy::Client,
    token_use: TokenUse,
    retry: Option<Duration>,
}

impl Requests<'_> {
    fn build(&self, stack: &Stack, ledger: Option<&Arc<Ledger>>) -> anyhow::Result<HttpTarget> {
        let front = format!("http://{}", stack.front());
        let mut builder = HttpTarget::builder(Method::POST, format!("{front}/api/v1/tours").parse()?)
            .header("content-type", "application/json")
            .header("idempotency-key", "{{uuid}}")
            .body(self.payload.template(self.info))
            .token(self.token(&front)?)
            .expect_status(StatusCode::CREATED)
            .timeout(TIMEOUT);
        if let Some(bound) = self.retry {
            builder = builder.repeat(bound);
        }
        if let Some(ledger) = ledger {
            let (ledger, tenant) = (Arc::clone(ledger), self.client.tenant.clone());
            let (info, of_payload) = (self.info, self.payload.info().as_deref().map(digest::short));
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
        Ok(Self(tour))
    }

    fn info(&self) -> Option<String> {
        self.0["tenantConfig"]["tenantInfo"].as_str().map(str::to_owned)
    }

    /// The body with a tour number that differs from request to request.
    fn template(&self, info: Info) -> String {
        let mut tour = self.0.clone();
        if info == Info::Changed {
            tour["tenantConfig"]["tenantInfo"] = changed_info("{{uuid}}").into();
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tour_number_varies_and_so_does_what_is_changed() {
        let payload = r#"{"tourNumber":"BT-1","tenantConfig":{"tenantInfo":null},"stops":[{"sequence":1}]}"#;
        let payload = Payload::parse(payload).unwrap();
        assert_eq!(
            payload.template(Info::OfPayload),
            r#"{"tourNumber":"T-{{uuid}}","tenantConfig":{"tenantInfo":null},"stops":[{"sequence":1}]}"#
        );
        assert_eq!(
            payload.template(Info::Changed),
            r#"{"tourNumber":"T-{{uuid}}","tenantConfig":{"tenantInfo":"changed by {{uuid}}"},"stops":[{"sequence":1}]}"#
        );
        let error = Payload::parse("{}").err().unwrap();
        assert!(error.to_string().contains("tourNumber"));
    }
}
