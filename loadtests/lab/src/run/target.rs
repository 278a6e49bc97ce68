//! The load of an experiment: `POST /api/v1/tours` through the front, as the published test did.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use http::{Method, StatusCode};
use load::{Exchange, Failure, HttpTarget, Kind, Token, TokenSource};
use serde::Deserialize;
use uuid::Uuid;

use crate::audit::{Acknowledged, Ledger};
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
/// `ledger`, when there is one.
pub(crate) fn create_tour(
    stack: &Stack,
    experiment: &Experiment,
    token_use: TokenUse,
    ledger: Option<Arc<Ledger>>,
) -> anyhow::Result<HttpTarget> {
    let front = format!("http://{}", stack.front());
    let url = format!("{front}/api/v1/tours").parse()?;
    let path = experiment.payload_path();
    let payload = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let body = template(&payload).with_context(|| format!("{} is not a tour", path.display()))?;
    let mut builder = HttpTarget::builder(Method::POST, url)
        .header("content-type", "application/json")
        .header("idempotency-key", "{{uuid}}")
        .body(body)
        .token(token(stack, &front, token_use)?)
        .expect_status(StatusCode::CREATED)
        .timeout(TIMEOUT);
    if let Some(bound) = experiment.retry {
        builder = builder.repeat(bound);
    }
    if let Some(ledger) = ledger {
        builder = builder.on_response(move |exchange| record(&ledger, exchange));
    }
    Ok(builder.build()?)
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

/// The payload with a tour number that differs from request to request.
fn template(payload: &str) -> anyhow::Result<String> {
    let mut tour: serde_json::Value = serde_json::from_str(payload)?;
    let number = tour.get_mut("tourNumber").context("it has no `tourNumber`")?;
    *number = "T-{{uuid}}".into();
    Ok(tour.to_string())
}

fn token(stack: &Stack, front: &str, usage: TokenUse) -> anyhow::Result<Token> {
    let client = stack
        .client(CLIENT)
        .with_context(|| format!("the stack has no client `{CLIENT}`"))?;
    let source = TokenSource {
        url: format!("{front}/oauth2/token").parse()?,
        client_id: client.id,
        client_secret: client.secret,
    };
    Ok(match usage {
        TokenUse::None => Token::None,
        TokenUse::Once => Token::Once(source),
        TokenUse::PerIteration => Token::PerIteration { source, timed: false },
        TokenUse::PerIterationTimed => Token::PerIteration { source, timed: true },
    })
}

fn record(ledger: &Ledger, exchange: &Exchange<'_>) -> Result<(), Failure> {
    if exchange.status != StatusCode::CREATED {
        return Ok(());
    }
    let created: Created = serde_json::from_slice(exchange.body)
        .map_err(|error| Failure::new(Kind::Body, format!("a 201 without a tour's id and rows: {error}")))?;
    ledger.record(&Acknowledged {
        tour_id: created.id,
        rows: created.rows,
        idempotency_key: Some(exchange.uuid.to_string()),
        sent_at_ms: ms_of(exchange.sent_at),
        acked_at_ms: ms_of(exchange.acked_at),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tour_number_varies_and_the_rest_of_the_payload_stays() {
        let payload = r#"{"tourNumber":"BT-1","stops":[{"sequence":1}]}"#;
        assert_eq!(
            template(payload).unwrap(),
            r#"{"tourNumber":"T-{{uuid}}","stops":[{"sequence":1}]}"#
        );
        assert!(template("{}").unwrap_err().to_string().contains("tourNumber"));
    }
}
