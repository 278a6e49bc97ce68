//! What an attacker needs: the parts of a good token, to be changed, and the list of what was tried.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::PATH;
use crate::support::TourService;

/// What the answer has to be.
pub(super) enum Told {
    /// 401 without an error code: nothing was presented (section 3.1).
    Nothing,
    /// 401 `invalid_token`.
    Invalid,
    /// 403 `insufficient_scope` with the scope that is needed.
    Scope,
    /// 403 for a good token of another tenant.
    OtherTenant,
}

/// A request and what its sender has to be told.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) request: RequestBuilder,
    pub(super) told: Told,
}

/// The parts of a good token, to be changed.
pub(super) struct Forge<'a> {
    pub(super) service: &'a TourService,
    pub(super) claims: Value,
    pub(super) attacks: Vec<Attack>,
}

impl Forge<'_> {
    pub(super) fn get(&self, path: &str) -> RequestBuilder {
        self.service.client.get(self.service.url(path))
    }

    pub(super) fn header(&self) -> Value {
        json!({"typ": "at+jwt", "alg": "RS256", "kid": "test"})
    }

    pub(super) fn claims_with(&self, name: &str, value: Value) -> Value {
        let mut claims = self.claims.clone();
        claims[name] = value;
        claims
    }

    pub(super) fn add(&mut self, name: &'static str, request: RequestBuilder, told: Told) {
        self.attacks.push(Attack { name, request, told });
    }

    /// A token that is to be called invalid.
    pub(super) fn token(&mut self, name: &'static str, token: &str) {
        let request = self.get(PATH).header("authorization", format!("Bearer {token}"));
        self.add(name, request, Told::Invalid);
    }

    /// A token with these claims, rightly signed, that is to be called invalid.
    pub(super) fn claim(&mut self, name: &'static str, claim: &str, value: Value) {
        let token = self
            .service
            .issuer
            .sign(&self.header(), &self.claims_with(claim, value));
        self.token(name, &token);
    }

    /// A token with this member of the header, rightly signed, that is to be called invalid.
    pub(super) fn member(&mut self, name: &'static str, member: &str, value: Value) {
        let mut header = self.header();
        header[member] = value;
        let token = self.service.issuer.sign(&header, &self.claims);
        self.token(name, &token);
    }
}

/// Two parts of a token, still to be signed.
pub(super) fn encoded(parts: [&Value; 2]) -> String {
    parts.map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".")
}

/// A token signed with a secret.
pub(super) fn hs256(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let signed = encoded([header, claims]);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}
