//! `GET /api/users/{id}`

use axum::extract::{Path, State};
use axum::http::StatusCode;
use chassis::problem::{Json, Problem};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AccountView, Caller};
use crate::failure::Failure;
use crate::issuer::Issuer;
use crate::store;

/// Accounts of other tenants are unknown: that they exist is their tenant's business.
pub(crate) async fn by_id(
    State(issuer): State<Issuer>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<AccountView>, Problem> {
    let account = match Uuid::parse_str(&id) {
        Ok(id) => {
            let find = async |connection: &mut PgConnection| store::account::find(connection, id).await;
            chassis::db::read(issuer.pool(), find).await.map_err(Failure::from)?
        }
        // What is no UUID is the id of no account.
        Err(_) => None,
    };
    let account = account
        .filter(|account| account.tenant.as_deref() == caller.tenant())
        .ok_or_else(|| {
            Problem::new(StatusCode::NOT_FOUND, "unknown-user", "Unknown user")
                .detail(format!("No user has the id {id}."))
        })?;
    Ok(Json(if caller.account() == Some(account.id) {
        AccountView::of_oneself(account)
    } else {
        AccountView::of_another(account)
    }))
}
