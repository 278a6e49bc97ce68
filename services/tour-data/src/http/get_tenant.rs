//! `GET /api/v1/tenants/{key}`

use axum::extract::State;
use chassis::auth::Bearer;
use chassis::problem::{Json, Path, Problem};

use super::require_tenant;
use crate::store::TenantConfig;

pub(super) async fn get_tenant(
    State(state): State<super::State>,
    Bearer(claims): Bearer,
    Path(key): Path<String>,
) -> Result<Json<TenantConfig>, Problem> {
    claims.require_scope("tours:read")?;
    let tenant = require_tenant(&claims, &key)?;
    Ok(Json(state.plan.tenant_config(&tenant).await?))
}
