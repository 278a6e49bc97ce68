//! Client authentication: HTTP Basic or body parameters (RFC 6749, section 2.3.1), never both.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sqlx::PgConnection;

use super::given;
use crate::issuer::Issuer;
use crate::oauth::OauthError;
use crate::store;
use crate::store::client::Client;

/// The answer to a body that is no form, or one with a parameter twice.
pub(super) const NOT_A_FORM: OauthError =
    OauthError::InvalidRequest("the body must be application/x-www-form-urlencoded with each parameter at most once");

/// As presented, not yet checked.
struct Credentials {
    client_id: String,
    secret: String,
}

/// The client that sent the request, if it has proved to be it.
pub(super) async fn authenticate(
    issuer: &Issuer,
    headers: &HeaderMap,
    body_id: Option<String>,
    body_secret: Option<String>,
) -> Result<Client, OauthError> {
    let presented = find(headers, given(body_id), given(body_secret))?;
    issuer.loaded()?;
    // The database refuses a text with a NUL, which is no reason to say that it is away.
    let client = if presented.client_id.contains('\0') {
        None
    } else {
        let find = async |connection: &mut PgConnection| store::client::find(connection, &presented.client_id).await;
        chassis::db::read(issuer.pool(), find).await?
    };
    let stored = client.as_ref().map(|client| client.secret_hash.as_slice());
    let verified = issuer.hasher().verify(&presented.client_id, &presented.secret, stored);
    client.filter(|_| verified).ok_or(OauthError::InvalidClient)
}

/// Takes the credentials from wherever the client put them.
fn find(headers: &HeaderMap, body_id: Option<String>, body_secret: Option<String>) -> Result<Credentials, OauthError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return match (body_id, body_secret) {
            (Some(client_id), Some(secret)) => Ok(Credentials { client_id, secret }),
            _ => Err(OauthError::InvalidClient),
        };
    };
    if body_secret.is_some() {
        return Err(OauthError::InvalidRequest(
            "credentials must be in the Authorization header or in the body, not in both",
        ));
    }
    let credentials = header.to_str().ok().and_then(basic).ok_or(OauthError::InvalidClient)?;
    if body_id.is_some_and(|id| id != credentials.client_id) {
        return Err(OauthError::InvalidRequest(
            "client_id in the body is not the client of the Authorization header",
        ));
    }
    Ok(credentials)
}

fn basic(header: &str) -> Option<Credentials> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (client_id, secret) = decoded.split_once(':')?;
    Some(Credentials {
        client_id: form_decode(client_id)?,
        secret: form_decode(secret)?,
    })
}

/// OAuth asks for both halves to be form-encoded before they go into the Basic scheme, which plain HTTP
/// clients do not do. A generated secret without `%` and `+` is the same either way.
fn form_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn with_basic(text: &str) -> HeaderMap {
        let value = format!("Basic {}", STANDARD.encode(text));
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&value).expect("is a header value"))])
    }

    #[test]
    fn basic_credentials_are_form_decoded() {
        let found = find(&with_basic("a%3Ab:s%2Bc+d"), None, None).expect("found");
        assert_eq!(found.client_id, "a:b");
        assert_eq!(found.secret, "s+c d");
    }

    #[test]
    fn a_secret_may_hold_a_colon() {
        let found = find(&with_basic("a:b:c"), None, None).expect("found");
        assert_eq!(found.secret, "b:c");
    }

    #[test]
    fn broken_escapes_other_schemes_and_missing_halves_do_not_authenticate() {
        for text in ["a%zz:b", "a:b%2", "no-colon", "a:%ff"] {
            let result = find(&with_basic(text), None, None);
            assert!(matches!(result, Err(OauthError::InvalidClient)), "{text}");
        }
        let bearer = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer x"))]);
        assert!(matches!(find(&bearer, None, None), Err(OauthError::InvalidClient)));
        assert!(matches!(
            find(&HeaderMap::new(), Some("a".to_owned()), None),
            Err(OauthError::InvalidClient)
        ));
    }

    #[test]
    fn two_ways_at_once_are_an_invalid_request() {
        let headers = with_basic("a:b");
        for (id, secret) in [(None, Some("b")), (Some("other"), None)] {
            let result = find(&headers, id.map(str::to_owned), secret.map(str::to_owned));
            assert!(matches!(result, Err(OauthError::InvalidRequest(_))));
        }
        assert!(find(&headers, Some("a".to_owned()), None).is_ok());
    }
}
