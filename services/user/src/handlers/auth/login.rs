//! `POST /api/auth/login {"username","password"}`

use axum::extract::State;
use axum::response::Response;
use chassis::problem::Problem;

use super::super::fields::Fields;
use super::{logged_in, unauthorized};
use crate::issuer::Issuer;
use crate::sessions::OWN_CLIENT;
use crate::{accounts, sessions};

pub(crate) async fn login(State(issuer): State<Issuer>, mut fields: Fields) -> Result<Response, Problem> {
    let username = fields.required("username")?;
    let password = fields.required("password")?;
    fields.end()?;
    let account = accounts::authenticate(&issuer, &username, password)
        .await?
        .ok_or_else(|| {
            unauthorized(
                "invalid-credentials",
                "Not logged in",
                "The user name or the password is wrong.",
            )
        })?;
    let scope = account.scopes.join(" ");
    let tokens = sessions::open(&issuer, &account, OWN_CLIENT, scope, true).await?;
    Ok(logged_in(&issuer, tokens))
}
