//! `GET /api/v1/tours/{id}`

use axum::extract::State;
use axum::http::StatusCode;
use chassis::auth::Bearer;
use chassis::problem::{Json, Path, Problem};
use uuid::Uuid;

use super::{own_tenant, require_tenant};
use crate::store::TourDocument;

pub(super) async fn get_tour(
    State(state): State<super::State>,
    Bearer(claims): Bearer,
    Path(id): Path<String>,
) -> Result<Json<TourDocument>, Problem> {
    claims.require_scope("tours:read")?;
    // What is no UUID is the id of no tour.
    let id = Uuid::parse_str(&id).map_err(|_| unknown(&id))?;
    let tour = match state.cache.get(id).await {
        Some(tour) => tour,
        None => {
            let found = state.plan.tour(&own_tenant(&claims)?, id).await?;
            let tour = found.ok_or_else(|| unknown(&id.to_string()))?;
            state.cache.put(id, &tour).await;
            tour
        }
    };
    require_tenant(&claims, &tour.tenant_key)?;
    Ok(Json(tour))
}

fn unknown(id: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown-tour", "Unknown tour").detail(format!("No tour has the id {id}."))
}
