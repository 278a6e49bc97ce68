//! Idempotency keys: the header a client repeats a request with, and the digest that tells the same request from another one.

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, StatusCode, request::Parts},
};

use crate::problem::Problem;

/// Response header that says "this answer was given before": `Idempotency-Replayed: true`.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const MAX_LENGTH: usize = 200;

/// The request's `Idempotency-Key`, if it has one: 1 to 200 visible ASCII characters.
///
/// The draft standard writes the value as a structured-field string (`"8e03978e"`), most clients write it bare; both
/// name the same key. Anything else is answered with 400, because a key that is cut or altered would let one request
/// pass for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(pub Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(&HEADER).iter();
        let Some(value) = values.next() else {
            return Ok(Self(None));
        };
        if values.next().is_some() {
            return Err(malformed("the header occurs more than once"));
        }
        let text = value
            .to_str()
            .map_err(|_| malformed("it holds characters outside visible ASCII"))?;
        let key = parse(text).map_err(malformed)?;
        Ok(Self(Some(key.to_owned())))
    }
}

/// SHA-256 of a request body, stored beside the key to refuse the same key with another body.
pub fn digest(body: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

fn parse(value: &str) -> Result<&str, &'static str> {
    let key = match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').ok_or("the closing quote is missing")?,
        None => value,
    };
    if key.is_empty() {
        return Err("it is empty");
    }
    if key.len() > MAX_LENGTH {
        return Err("it is longer than 200 characters");
    }
    if !key
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    {
        return Err("it holds a space, a quote, a backslash or a character outside visible ASCII");
    }
    Ok(key)
}

fn malformed(why: &str) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "malformed-idempotency-key",
        "The Idempotency-Key header is malformed",
    )
    .detail(format!(
        "The key cannot be used because {why}; send 1 to 200 visible ASCII characters, such as a UUID."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;

    #[test]
    fn a_key_is_the_same_with_and_without_the_quotes_of_a_structured_field() {
        assert_eq!(parse("8e03978e-40d5"), Ok("8e03978e-40d5"));
        assert_eq!(parse("\"8e03978e-40d5\""), Ok("8e03978e-40d5"));
    }

    #[test]
    fn keys_that_could_pass_for_others_are_refused() {
        let longest = "k".repeat(MAX_LENGTH);
        assert_eq!(parse(&longest), Ok(longest.as_str()));
        for wrong in [
            "",
            "\"\"",
            "\"open",
            "close\"",
            "two words",
            "tab\there",
            "ü",
            "a\\b",
            &"k".repeat(MAX_LENGTH + 1),
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[tokio::test]
    async fn two_keys_are_no_key() {
        let request = |keys: &[&str]| {
            let mut request = axum::http::Request::new(());
            for key in keys {
                request.headers_mut().append(HEADER, key.parse().expect("a header"));
            }
            request.into_parts().0
        };
        let extract = async |keys: &[&str]| IdempotencyKey::from_request_parts(&mut request(keys), &()).await;
        assert_eq!(extract(&[]).await.ok(), Some(IdempotencyKey(None)));
        assert_eq!(extract(&["a"]).await.ok(), Some(IdempotencyKey(Some("a".to_owned()))));
        assert_eq!(
            extract(&["a", "b"])
                .await
                .err()
                .map(|problem| problem.into_response().status()),
            Some(StatusCode::BAD_REQUEST)
        );
    }

    #[test]
    fn the_digest_is_sha_256() {
        let hex: String = digest(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
