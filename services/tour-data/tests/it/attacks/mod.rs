//! Tokens that must not get in: each attack goes over HTTP to a running service, and each answer is the one of RFC 6750.

mod forge;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use serde_json::{Value, json};

use self::forge::{Attack, Forge, Told, encoded, hs256};
use crate::support::{Database, Issuer, TourService, forged_signature, payload, public_key};

const PATH: &str = "/api/v1/tenants/BEHNGT";

/// Nothing that was presented, or presented where it does not count.
fn misplaced(forge: &mut Forge<'_>, good: &str) {
    let plain = forge.get(PATH);
    forge.add("no token", plain, Told::Nothing);
    let query = forge.get(&format!("{PATH}?access_token={good}"));
    forge.add("in the query", query, Told::Nothing);
    let cookie = forge.get(PATH).header("cookie", format!("access_token={good}"));
    forge.add("in a cookie", cookie, Told::Nothing);
    let body = forge.get(PATH).form(&[("access_token", good)]);
    forge.add("in the body", body, Told::Nothing);
    for (name, value) in [
        ("another scheme", format!("Basic {good}")),
        ("no scheme", good.to_owned()),
        ("the scheme alone", "Bearer".to_owned()),
        ("an empty token", "Bearer ".to_owned()),
        ("the scheme in quotes", format!("\"Bearer\" {good}")),
    ] {
        let request = forge.get(PATH).header("authorization", value);
        forge.add(name, request, Told::Nothing);
    }
    let forwarded = forge
        .get(PATH)
        .header("x-forwarded-user", "test")
        .header("x-forwarded-authorization", format!("Bearer {good}"));
    forge.add("in a header of proxies", forwarded, Told::Nothing);
    let bearer = format!("Bearer {good}");
    let twice = forge
        .get(PATH)
        .header("authorization", &bearer)
        .header("authorization", &bearer);
    forge.add("twice the same header", twice, Told::Invalid);
    let mixed = forge
        .get(PATH)
        .header("authorization", "Basic eDp5")
        .header("authorization", &bearer);
    forge.add("two schemes", mixed, Told::Invalid);
}

/// Signatures that are none, or somebody else's.
fn unsigned(forge: &mut Forge<'_>, good: &str) {
    let claims = forge.claims.clone();
    for (name, alg) in [("alg none", "none"), ("alg None", "None"), ("alg empty", "")] {
        let unsigned = encoded([&json!({"typ": "at+jwt", "alg": alg, "kid": "test"}), &claims]);
        forge.token(name, &format!("{unsigned}."));
    }
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    forge.token("alg none behind a good signature", &{
        let none = encoded([&json!({"typ": "at+jwt", "alg": "none", "kid": "test"}), &claims]);
        format!("{none}.{signature}")
    });
    let confused = json!({"typ": "at+jwt", "alg": "HS256", "kid": "test"});
    let (modulus, der) = public_key();
    forge.token("HS256 keyed with the modulus", &hs256(&confused, &claims, &modulus));
    forge.token("HS256 keyed with the public key", &hs256(&confused, &claims, &der));
    forge.token("HS256 with an empty key", &hs256(&confused, &claims, b""));
    forge.token("HS256 said to be RS256", &hs256(&forge.header(), &claims, &modulus));
    for (name, alg) in [("alg PS256", "PS256"), ("alg RS512", "RS512"), ("alg unknown", "RS999")] {
        forge.member(name, "alg", json!(alg));
    }
    forge.token("signed with another key", &forged_signature(&forge.header(), &claims));
    forge.token("without a signature", &format!("{signed}."));
    forge.token(
        "a signature cut short",
        &format!("{signed}.{}", &signature[..signature.len() - 4]),
    );
    forge.token("a signature too long", &format!("{signed}.{signature}AAAA"));
    forge.token(
        "a signature of zeros",
        &format!("{signed}.{}", URL_SAFE_NO_PAD.encode([0; 256])),
    );
    let (header, _) = signed.split_once('.').expect("two parts");
    let richer = URL_SAFE_NO_PAD.encode(forge.claims_with("tenant", json!("NORDEX")).to_string());
    forge.token("a changed payload", &format!("{header}.{richer}.{signature}"));
    let longer = URL_SAFE_NO_PAD.encode(forge.claims_with("exp", json!(9_999_999_999_i64)).to_string());
    forge.token("a prolonged payload", &format!("{header}.{longer}.{signature}"));
}

/// Headers that try to choose the key or the rules.
fn chosen_keys(forge: &mut Forge<'_>) {
    let claims = forge.claims.clone();
    let stranger = json!({"kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0xff; 256]), "e": "AQAB"});
    for (name, member, value) in [
        ("the key in the token", "jwk", stranger),
        ("the key at an address", "jku", json!("http://127.0.0.1:1/keys")),
        ("the certificate at an address", "x5u", json!("http://127.0.0.1:1/cert")),
        ("the certificate in the token", "x5c", json!(["MIIB"])),
    ] {
        let mut header = forge.header();
        header[member] = value;
        // Signed with the key it brings along; with the issuer's key the member is ignored.
        forge.token(name, &forged_signature(&header, &claims));
    }
    for (name, kid) in [
        ("an unknown kid", json!("unknown")),
        ("a kid that is a path", json!("../../../../dev/null")),
        ("a kid that is SQL", json!("' OR '1'='1")),
        ("a kid that is empty", json!("")),
        ("a kid that is a number", json!(1)),
        ("a kid with a NUL", json!("test\0")),
        ("a kid that is long", json!("k".repeat(4096))),
        ("no kid", Value::Null),
    ] {
        forge.member(name, "kid", kid);
    }
    forge.member("an extension nobody knows", "crit", json!(["exp"]));
    forge.member("a payload that is not encoded", "b64", json!(false));
    for (name, typ) in [
        ("an ID token", json!("JWT")),
        ("a logout token", json!("logout+jwt")),
        ("a type that begins like ours", json!("at+jwt2")),
        ("no type", Value::Null),
    ] {
        forge.member(name, "typ", typ);
    }
}

/// Claims that are wrong, rightly signed.
fn wrong_claims(forge: &mut Forge<'_>) {
    let now = chrono::Utc::now().timestamp();
    let issuer = forge.service.issuer.url.clone();
    for (name, claim, value) in [
        ("expired", "exp", json!(now - 60)),
        ("expired long ago", "exp", json!(0)),
        ("an expiry that is negative", "exp", json!(-1)),
        ("an expiry that is a text", "exp", json!("never")),
        ("no expiry", "exp", Value::Null),
        ("not valid yet", "nbf", json!(now + 60)),
        ("another issuer", "iss", json!("http://issuer.example")),
        ("an issuer that ends with a slash", "iss", json!(format!("{issuer}/"))),
        (
            "an issuer that begins like ours",
            "iss",
            json!(format!("{issuer}.example.org")),
        ),
        ("no issuer", "iss", Value::Null),
        ("another audience", "aud", json!("elsewhere")),
        ("an audience in capitals", "aud", json!("ROWLOCK")),
        ("audiences without ours", "aud", json!(["elsewhere", "rowlock2"])),
        ("no audience in the list", "aud", json!([])),
        ("no audience", "aud", Value::Null),
        ("no subject", "sub", Value::Null),
        ("no client", "client_id", Value::Null),
        ("scopes that are a number", "scope", json!(7)),
        ("a tenant that is a list", "tenant", json!(["BEHNGT", "NORDEX"])),
        ("a tenant that is empty", "tenant", json!("")),
    ] {
        forge.claim(name, claim, value);
    }
    let reader = forge
        .service
        .issuer
        .token(Some("BEHNGT"), "tours:readx xtours:read TOURS:READ");
    let request = forge.get(PATH).bearer_auth(reader);
    forge.add("scopes that resemble the right one", request, Told::Scope);
    let nothing = forge.service.issuer.token(Some("BEHNGT"), "");
    let request = forge.get(PATH).bearer_auth(nothing);
    forge.add("no scope", request, Told::Scope);
    for (name, tenant) in [
        ("another tenant", Some("NORDEX")),
        ("the tenant in small letters", Some("behngt")),
        ("no tenant", None),
    ] {
        let request = forge
            .get(PATH)
            .bearer_auth(forge.service.issuer.token(tenant, "tours:read"));
        forge.add(name, request, Told::OtherTenant);
    }
    let write = forge.service.issuer.token(Some("NORDEX"), "tours:write");
    let post = forge.service.client.post(forge.service.url("/api/v1/tours"));
    let request = post.bearer_auth(write).json(&payload());
    forge.add("a tour for another tenant", request, Told::OtherTenant);
}

/// What is no token at all.
fn malformed(forge: &mut Forge<'_>, good: &str) {
    let parts: Vec<&str> = good.split('.').collect();
    let deep = format!("{}{}", "[".repeat(3000), "]".repeat(3000));
    for (name, token) in [
        ("dots", "..".to_owned()),
        ("one part", parts[0].to_owned()),
        ("two parts", parts[..2].join(".")),
        ("four parts", format!("{good}.{}", parts[2])),
        ("five parts, as if encrypted", [parts[0]; 5].join(".")),
        ("a header that is no base64", format!("!!.{}.{}", parts[1], parts[2])),
        ("a header that is no JSON", format!("AAAA.{}.{}", parts[1], parts[2])),
        (
            "a header that is a list",
            format!("{}.{}.{}", URL_SAFE_NO_PAD.encode("[]"), parts[1], parts[2]),
        ),
        (
            "a payload that is a text",
            forge.service.issuer.sign(&forge.header(), &json!("claims")),
        ),
        (
            "a payload that is deep",
            format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(deep), parts[2]),
        ),
        ("two tokens", format!("{good} {good}")),
        ("two tokens and a comma", format!("{good},{good}")),
        ("in quotes", format!("\"{good}\"")),
        ("padded", format!("{good}====")),
        ("percent-encoded", good.replace('.', "%2E")),
        ("oversized", format!("{good}{}", "A".repeat(9000))),
        ("very oversized", "A".repeat(60_000)),
    ] {
        forge.token(name, &token);
    }
    let bytes = reqwest::header::HeaderValue::from_bytes(b"Bearer \xff\xfe").expect("opaque bytes");
    let request = forge.get(PATH).header("authorization", bytes);
    forge.add("no ASCII", request, Told::Invalid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_forged_misplaced_or_foreign_token_gets_in_and_each_answer_follows_rfc_6750() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let good = service.token().to_owned();
    let claims: Value = good
        .split('.')
        .nth(1)
        .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .expect("a token of ours");
    let mut forge = Forge {
        service: &service,
        claims,
        attacks: Vec::new(),
    };
    misplaced(&mut forge, &good);
    unsigned(&mut forge, &good);
    chosen_keys(&mut forge);
    wrong_claims(&mut forge);
    malformed(&mut forge, &good);
    // The table starts from a token that does get in, and the forger's tools from ones that would.
    let by_hand = service.issuer.sign(&forge.header(), &forge.claims);
    for token in [&good, &by_hand] {
        assert_eq!(service.get_as(PATH, token).await.0, StatusCode::OK);
    }

    let attacks = forge.attacks;
    let names: BTreeSet<&str> = attacks.iter().map(|attack| attack.name).collect();
    assert_eq!(names.len(), attacks.len(), "each has a name of its own");
    assert!(attacks.len() >= 25, "only {}", attacks.len());
    for Attack { name, request, told } in attacks {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let challenge = headers
            .get("www-authenticate")
            .map(|value| value.to_str().expect("ASCII"));
        assert_eq!(headers["content-type"], "application/problem+json", "{name}");
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!(problem["status"], status, "{name}");
        let says = |text: &str| challenge.is_some_and(|challenge| challenge.contains(text));
        let right = match told {
            Told::Nothing => status == 401 && challenge == Some(r#"Bearer realm="rowlock""#),
            Told::Invalid => status == 401 && says(r#"error="invalid_token", error_description=""#),
            Told::Scope => status == 403 && says(r#"error="insufficient_scope", scope="tours:read""#),
            Told::OtherTenant => status == 403 && problem["type"] == "urn:rowlock:problem:tenant-mismatch",
        };
        assert!(right, "{name}: {status} {challenge:?} {problem}");
        assert!(!says(&good), "{name}: the token is sent back");
    }
    assert_eq!(crate::support::tours_of(&database).await, 0, "nothing was written");
    assert_eq!(
        service.get_as(PATH, &good).await.0,
        StatusCode::OK,
        "and the good one still gets in"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_key_ids_do_not_make_the_service_storm_its_issuer() {
    let database = Database::create().await;
    let service = TourService::start(&database, &[]).await;
    let started = tokio::time::Instant::now();
    let ask = async |number: usize| {
        let header = json!({"typ": "at+jwt", "alg": "RS256", "kid": format!("invented-{number}")});
        let claims = json!({"sub": "x"});
        let token = format!("{}.AAAA", encoded([&header, &claims]));
        service.get_as(PATH, &token).await.0
    };
    let answers = futures::future::join_all((0..200).map(ask)).await;
    assert!(
        answers.iter().all(|status| *status == StatusCode::UNAUTHORIZED),
        "{answers:?}"
    );
    // One while the service starts, one at the first such token, and another one every 5 s at most.
    let allowed = 2 + started.elapsed().as_secs() / 5;
    assert!(
        service.issuer.fetches() <= allowed,
        "{} fetches",
        service.issuer.fetches()
    );
}

/// Its issuer may be away: then nobody can say that a token is bad, and nobody gets in.
#[tokio::test]
async fn a_good_token_waits_outside_while_its_issuer_is_away() {
    let database = Database::create().await;
    let elsewhere = Issuer::start().await;
    let url = elsewhere.url.clone();
    let token = elsewhere.token(Some("BEHNGT"), "tours:read");
    drop(elsewhere);
    let service = TourService::start(&database, &[("TOUR_DATA_AUTH_ISSUER", &url)]).await;
    let response = service
        .client
        .get(service.url(PATH))
        .bearer_auth(token)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    let problem: Value = response.json().await.expect("JSON");
    assert_eq!(problem["type"], "urn:rowlock:problem:issuer-unavailable");
}
