//! `POST /api/v1/tours`

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chassis::auth::Bearer;
use chassis::idempotency::{self, IdempotencyKey};
use chassis::problem::{Json, Problem};
use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::{RETRY_AFTER, require_tenant, unavailable};
use crate::plan::{Committed, CreateError};
use crate::tour::{Identity, Invalid, TourDto, parse};

/// Body of the 201.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    id: Uuid,
    tour_number: String,
    tenant_key: String,
    created_at: DateTime<Utc>,
    rows: u64,
}

pub(super) async fn create_tour(
    State(state): State<super::State>,
    Bearer(claims): Bearer,
    IdempotencyKey(key): IdempotencyKey,
    Json(dto): Json<TourDto>,
) -> Result<Response, Problem> {
    claims.require_scope("tours:write")?;
    require_tenant(&claims, &dto.tenant_config.tenant_key)?;
    let keyed = key.is_some();
    let request_digest = digest(&dto)?;
    let identity = Identity {
        now: (state.clock)(),
        new_id: &mut row_ids(),
        idempotency_key: key,
        request_digest,
    };
    let tour = parse(dto, identity).map_err(|problems| invalid(&problems))?;
    let done = state.plan.create(tour).await.map_err(|error| problem(error, keyed))?;
    Ok(answer(done))
}

/// The ids of a tour's rows: a UUID of version 7 and those that follow it. Each of its own would be a call of the kernel for
/// random bytes, 87 of them a tour.
fn row_ids() -> impl FnMut() -> Uuid {
    let mut next = Uuid::now_v7().as_u128();
    move || {
        let id = Uuid::from_u128(next);
        next = next.wrapping_add(1);
        id
    }
}

/// Of what the body says and not of how it is spelt: a client that repeats a request may format it anew.
fn digest(dto: &TourDto) -> Result<[u8; 32], Problem> {
    let canonical = serde_json::to_vec(dto).map_err(Problem::internal)?;
    Ok(idempotency::digest(&canonical))
}

fn answer(done: Committed) -> Response {
    let location = format!("/api/v1/tours/{}", done.tour_id);
    let replayed = done.replayed;
    let body = Created {
        id: done.tour_id,
        tour_number: done.tour_number,
        tenant_key: done.tenant_key,
        created_at: done.created_at,
        rows: done.rows,
    };
    let mut response = (StatusCode::CREATED, [(LOCATION, location)], Json(body)).into_response();
    if replayed {
        response
            .headers_mut()
            .insert(idempotency::REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The first reason is the problem's field; all of them are in its text.
fn invalid(problems: &[Invalid]) -> Problem {
    let detail: Vec<_> = problems
        .iter()
        .map(|problem| format!("{} {}", problem.pointer, problem.reason))
        .collect();
    let problem = Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid-tour",
        "The tour is not valid",
    )
    .detail(format!("{}.", detail.join("; ")));
    match problems.first() {
        Some(first) => problem.field(&first.pointer),
        None => problem,
    }
}

fn problem(error: CreateError, keyed: bool) -> Problem {
    let repeat = if keyed {
        "Repeat the request with the same Idempotency-Key."
    } else {
        "The request had no Idempotency-Key: look for the tour before you repeat it, or there may be two."
    };
    match error {
        CreateError::UnknownTenant(key) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown-tenant", "Unknown tenant")
                .detail(format!("No tenant has the key {key}."))
                .field("/tenantConfig/tenantKey")
        }
        CreateError::KeyReused => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency-key-reused",
            "The Idempotency-Key was used before",
        )
        .detail("It created a tour with another content; send a new key with a new tour."),
        CreateError::NotTouched(error) => {
            tracing::warn!(%error, "answering 503");
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not-touched",
                "The tenant's configuration is not written yet",
            )
            .detail(format!(
                "The tour is stored, but its tenant's configuration is not and its message is not sent. {repeat}"
            ))
            .retry_after(RETRY_AFTER)
        }
        CreateError::NotAnnounced(error) => {
            tracing::warn!(%error, "answering 503");
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not-announced",
                "The tour is not announced yet",
            )
            .detail(format!(
                "The tour is stored, but the message broker has not confirmed its message. {repeat}"
            ))
            .retry_after(RETRY_AFTER)
        }
        CreateError::CommitUnknown(error) => {
            tracing::error!(%error, "the answer to COMMIT was lost");
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "commit-unknown",
                "The outcome is not known",
            )
            .detail(format!(
                "The connection to the database broke during COMMIT: the tour may exist. {repeat}"
            ))
            .retry_after(RETRY_AFTER)
        }
        CreateError::Unavailable(error) => unavailable(&error),
        CreateError::Contended(state) => {
            tracing::warn!(state, "gave up a transaction that was rolled back every time");
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "contended",
                "Too many concurrent tours",
            )
            .detail("Other tours of the tenant came first every time. Nothing was written. Try again shortly.")
            .retry_after(RETRY_AFTER)
        }
        CreateError::Internal(cause) => Problem::internal(cause),
    }
}
