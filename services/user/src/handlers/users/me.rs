//! `GET /api/users/me`

use axum::extract::State;
use axum::http::StatusCode;
use chassis::problem::{Json, Problem};
use sqlx::PgConnection;

use super::{AccountView, Caller};
use crate::failure::Failure;
use crate::issuer::Issuer;
use crate::store;

pub(crate) async fn me(State(issuer): State<Issuer>, caller: Caller) -> Result<Json<AccountView>, Problem> {
    let account = match caller.account() {
        Some(id) => {
            let find = async |connection: &mut PgConnection| store::account::find(connection, id).await;
            chassis::db::read(issuer.pool(), find).await.map_err(Failure::from)?
        }
        None => None,
    };
    let account = account.ok_or_else(|| {
        Problem::new(StatusCode::FORBIDDEN, "no-account", "The token is no user's")
            .detail("The token was issued to a client that acts for itself, or the account is gone.")
    })?;
    Ok(Json(AccountView::of_oneself(account)))
}
