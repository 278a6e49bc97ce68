//! A token the way a client gets one: through the front, by its credentials.

use anyhow::Context;
use deploy::Client;
use serde::Deserialize;

#[derive(Deserialize)]
struct Token {
    access_token: String,
}

/// Asks for one with all scopes that `client` has.
///
/// # Errors
/// The front does not answer, or refuses.
pub(crate) async fn fetch(http: &reqwest::Client, front: &str, client: &Client) -> anyhow::Result<String> {
    let request = http
        .post(format!("{front}/oauth2/token"))
        .form(&[("grant_type", "client_credentials")])
        .basic_auth(&client.id, Some(&client.secret));
    let answer = request.send().await?.error_for_status()?;
    let token: Token = answer
        .json()
        .await
        .context("the answer to a token request is no token")?;
    Ok(token.access_token)
}
