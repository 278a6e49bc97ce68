//! An issuer of tokens in this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One for all tests: making a key takes longer than most of them.
fn key() -> &'static RsaKeyPair {
    static KEY: OnceLock<RsaKeyPair> = OnceLock::new();
    KEY.get_or_init(|| RsaKeyPair::generate(KeySize::Rsa2048).expect("a key"))
}

/// The public half, as the modulus and as it is exchanged: what an attacker has.
pub(crate) fn public_key() -> (Vec<u8>, Vec<u8>) {
    let public = key().public_key();
    let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
    (modulus, public.as_ref().to_vec())
}

/// A token signed by a key of an attacker's own.
pub(crate) fn forged_signature(header: &Value, claims: &Value) -> String {
    static OTHER: OnceLock<RsaKeyPair> = OnceLock::new();
    sign(
        OTHER.get_or_init(|| RsaKeyPair::generate(KeySize::Rsa2048).expect("a key")),
        header,
        claims,
    )
}

pub(crate) struct Issuer {
    pub(crate) url: String,
    fetches: Arc<AtomicU64>,
    server: JoinHandle<()>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let public = key().public_key();
        let jwks = json!({"keys": [{
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": "test",
            "n": URL_SAFE_NO_PAD.encode(public.modulus().big_endian_without_leading_zero()),
            "e": URL_SAFE_NO_PAD.encode(public.exponent().big_endian_without_leading_zero()),
        }]});
        let fetches = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&fetches);
        let discovery = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(async || axum::Json(discovery)))
            .route(
                "/keys",
                get(async move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    axum::Json(jwks)
                }),
            );
        let server = tokio::spawn(async { axum::serve(listener, router).await.expect("it serves") });
        Self { url, fetches, server }
    }

    /// How often it was asked for its keys.
    pub(crate) fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::SeqCst)
    }

    /// A token with any header and claims, rightly signed.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        sign(key(), header, claims)
    }

    /// A token for one tenant, or for none.
    pub(crate) fn token(&self, tenant: Option<&str>, scope: &str) -> String {
        let now = Utc::now().timestamp();
        let mut claims = json!({
            "iss": self.url, "aud": "rowlock", "sub": "test", "client_id": "test", "scope": scope,
            "iat": now, "exp": now + 300, "jti": "1",
        });
        if let Some(tenant) = tenant {
            claims["tenant"] = tenant.into();
        }
        self.sign(&json!({"typ": "at+jwt", "alg": "RS256", "kid": "test"}), &claims)
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn sign(key: &RsaKeyPair, header: &Value, claims: &Value) -> String {
    let signed = [header, claims]
        .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()))
        .join(".");
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .expect("a signature");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
