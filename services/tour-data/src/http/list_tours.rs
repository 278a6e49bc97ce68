//! `GET /api/v1/tours?tenant=KEY&limit=20&after=ID`

use axum::extract::State;
use axum::http::StatusCode;
use chassis::auth::Bearer;
use chassis::problem::{Json, Problem, Query};
use serde::Deserialize;
use uuid::Uuid;

use super::require_tenant;
use crate::store::{self, TourPage};

/// Tours on a page, by default and at most.
const DEFAULT_LIMIT: u16 = 20;
const MAX_LIMIT: u16 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    tenant: String,
    limit: Option<u16>,
    after: Option<Uuid>,
}

pub(super) async fn list_tours(
    State(state): State<super::State>,
    Bearer(claims): Bearer,
    Query(Parameters { tenant, limit, after }): Query<Parameters>,
) -> Result<Json<TourPage>, Problem> {
    claims.require_scope("tours:read")?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "Invalid query")
            .detail(format!("limit is {limit}, expected 1 to {MAX_LIMIT}")));
    }
    let tenant = require_tenant(&claims, &tenant)?;
    let home = state.plan.home(&tenant).await?;
    Ok(Json(store::tours_page(&home.shard, home.tenant, after, limit).await?))
}
