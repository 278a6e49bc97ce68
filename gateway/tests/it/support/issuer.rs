//! Tokens, good and forged, and the keys to check them.

use std::net::SocketAddr;
use std::sync::LazyLock;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair, RsaKeyPair};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::upstream::serve;

pub(crate) const ISSUER: &str = "http://issuer.test";
const KID: &str = "the-key";

/// Made once for all tests: a key takes a good part of a second.
static KEYS: LazyLock<[Key; 2]> = LazyLock::new(|| [Key::generate(), Key::generate()]);

struct Key {
    encoding: EncodingKey,
    jwk: Value,
}

impl Key {
    fn generate() -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("generates");
        let pkcs8 = pair.as_der().expect("encodes");
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(pkcs8.as_ref())
        );
        let public = pair.public_key();
        let jwk = json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": KID,
            "n": URL_SAFE_NO_PAD.encode(public.modulus().big_endian_without_leading_zero()),
            "e": URL_SAFE_NO_PAD.encode(public.exponent().big_endian_without_leading_zero()),
        });
        Self {
            encoding: EncodingKey::from_rsa_pem(pem.as_bytes()).expect("parses"),
            jwk,
        }
    }
}

/// Serves the keys.
pub(crate) struct Issuer(SocketAddr);

impl Issuer {
    pub(crate) async fn start() -> Self {
        let keys = json!({"keys": [KEYS[0].jwk]});
        Self(serve(Router::new().route("/jwks", get(async move || Json(keys)))).await)
    }

    pub(crate) fn jwks_url(&self) -> String {
        format!("http://{}/jwks", self.0)
    }

    /// A good token.
    pub(crate) fn token(&self) -> String {
        self.token_of("load")
    }

    /// A good token of somebody else.
    pub(crate) fn token_of(&self, subject: &str) -> String {
        let mut claims = claims(300);
        claims["sub"] = subject.into();
        sign(&KEYS[0], &claims)
    }

    /// One that ended a minute ago.
    pub(crate) fn expired(&self) -> String {
        sign(&KEYS[0], &claims(-60))
    }

    /// One that names the issuer's key and is signed with another.
    pub(crate) fn forged(&self) -> String {
        sign(&KEYS[1], &claims(300))
    }
}

fn claims(lifetime_s: i64) -> Value {
    let now = std::time::UNIX_EPOCH.elapsed().expect("it is after 1970").as_secs();
    let now = i64::try_from(now).expect("it is before the end of time");
    json!({
        "iss": ISSUER, "aud": "rowlock", "sub": "load", "client_id": "load", "tenant": "BEHNGT",
        "scope": "tours:read tours:write", "iat": now, "exp": now + lifetime_s, "jti": "1",
    })
}

fn sign(key: &Key, claims: &Value) -> String {
    let header = Header {
        typ: Some("at+jwt".to_owned()),
        kid: Some(KID.to_owned()),
        ..Header::new(Algorithm::RS256)
    };
    jsonwebtoken::encode(&header, claims, &key.encoding).expect("signs")
}
