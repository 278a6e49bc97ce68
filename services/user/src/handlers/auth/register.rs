//! `POST /api/auth/register {"username","password","email"?}`

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chassis::problem::{Json, Problem};

use super::super::fields::{Fields, invalid};
use super::super::users::AccountView;
use crate::accounts::{self, RegisterError};
use crate::issuer::Issuer;
use crate::names;

pub(crate) async fn register(State(issuer): State<Issuer>, mut fields: Fields) -> Result<Response, Problem> {
    let username = fields.required("username")?;
    let password = fields.required("password")?;
    let email = fields.optional("email")?;
    fields.end()?;
    let username = names::username(&username).map_err(|reason| invalid("username", &reason))?;
    names::password(&password, &username).map_err(|reason| invalid("password", &reason))?;
    let email = email
        .map(|email| names::email(&email).map_err(|reason| invalid("email", &reason)))
        .transpose()?;
    let account = accounts::register(&issuer, username, email, password)
        .await
        .map_err(|error| match error {
            RegisterError::Taken(field) => Problem::new(StatusCode::CONFLICT, "taken", "Taken by another account")
                .detail(format!("Another account has this {field}."))
                .field(format!("/{field}")),
            RegisterError::Failure(failure) => failure.into(),
        })?;
    let location = format!("/api/users/{}", account.id);
    let view = AccountView::of_oneself(account);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(view)).into_response())
}
