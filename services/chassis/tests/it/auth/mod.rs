//! The bearer check against an issuer in this process.

mod answers;
mod introspection;
mod keys;
mod tokens;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
};
use axum::{Router, routing::get};
use base64::{Engine, engine::general_purpose::STANDARD};
use chassis::{
    auth::{AuthConfig, Verifier},
    config,
};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// A signing key and its public half.
struct Key {
    private: EncodingKey,
    public: Jwk,
}

impl Key {
    fn generate(kid: &str) -> Self {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).expect("PKCS #8");
        let text = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
        let private = EncodingKey::from_rsa_pem(pem.as_bytes()).expect("a private key");
        let mut public = Jwk::from_encoding_key(&private, Algorithm::RS256).expect("a public key");
        public.common.key_id = Some(kid.to_owned());
        Self { private, public }
    }

    fn sign(&self, kid: &str, typ: &str, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(kid.to_owned());
        header.typ = Some(typ.to_owned());
        jsonwebtoken::encode(&header, claims, &self.private).expect("a token")
    }
}

/// An issuer that publishes keys and counts how often it is asked for them.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Value>>,
    fetches: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Issuer {
    async fn start(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let set = Arc::new(Mutex::new(Self::set(keys)));
        let fetches = Arc::new(AtomicUsize::new(0));
        let discovery = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let (served, counted) = (Arc::clone(&set), Arc::clone(&fetches));
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(move || async move { axum::Json(discovery) }),
            )
            .route(
                "/keys",
                get(move || async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    axum::Json(served.lock().expect("not poisoned").clone())
                }),
            );
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("served") });
        Self {
            url,
            keys: set,
            fetches,
            server,
        }
    }

    fn set(keys: &[&Key]) -> Value {
        serde_json::to_value(JwkSet {
            keys: keys.iter().map(|key| key.public.clone()).collect(),
        })
        .expect("JSON")
    }

    fn publish(&self, keys: &[&Key]) {
        *self.keys.lock().expect("not poisoned") = Self::set(keys);
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    async fn die(&mut self) {
        self.server.abort();
        assert!((&mut self.server).await.is_err_and(|ended| ended.is_cancelled()));
    }

    fn verifier(&self) -> Verifier {
        Verifier::new(&config(&self.url)).expect("a good configuration")
    }

    fn claims(&self) -> Value {
        let now = now();
        json!({
            "iss": self.url, "aud": "rowlock", "sub": "rowlock-load", "client_id": "rowlock-load",
            "scope": "tours:read tours:write", "tenant": "BEHNGT", "iat": now, "exp": now + 300, "jti": "1",
        })
    }
}

fn config(issuer: &str) -> AuthConfig {
    config::parse_from("it", &[("IT_AUTH_ISSUER", issuer)]).expect("a good configuration")
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}
