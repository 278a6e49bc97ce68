//! Good tokens and the ways to be a bad one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chassis::auth::{AuthError, Verifier};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::AlgorithmParameters};
use serde_json::{Value, json};

use super::{Issuer, Key, now, with};

#[tokio::test]
async fn a_good_token_says_who_calls() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let verifier = issuer.verifier();
    for typ in ["at+jwt", "application/at+jwt", "AT+JWT"] {
        let claims = verifier
            .verify(&key.sign("k1", typ, &issuer.claims()))
            .await
            .expect("a good token");
        assert_eq!(claims.sub, "rowlock-load");
        assert_eq!(claims.client_id, "rowlock-load");
        assert_eq!(claims.tenant.as_deref(), Some("BEHNGT"));
        assert_eq!(claims.scopes, ["tours:read", "tours:write"]);
    }
    assert_eq!(issuer.fetches(), 1, "the keys are cached");
}

#[tokio::test]
async fn each_way_a_token_can_be_wrong_is_refused() {
    let key = Key::generate("k1");
    let stranger = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let verifier = issuer.verifier();
    let good = issuer.claims();
    let token = key.sign("k1", "at+jwt", &good);
    assert!(
        verifier.verify(&token).await.is_ok(),
        "the table starts from a good token"
    );

    let mut hmac = Header::new(Algorithm::HS256);
    hmac.kid = Some("k1".to_owned());
    hmac.typ = Some("at+jwt".to_owned());
    let AlgorithmParameters::RSA(parameters) = &key.public.algorithm else {
        panic!("an RSA key")
    };
    let modulus = URL_SAFE_NO_PAD.decode(&parameters.n).expect("base64");
    let secret = EncodingKey::from_secret(&modulus).expect("a key");
    let public_as_secret = jsonwebtoken::encode(&hmac, &good, &secret).expect("a token");
    let none = format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"at+jwt","kid":"k1"}"#),
        URL_SAFE_NO_PAD.encode(good.to_string()),
    );
    let (head, signature) = token.rsplit_once('.').expect("three parts");
    let (head, _) = head.rsplit_once('.').expect("three parts");
    let altered = with(good.clone(), "tenant", json!("NORDEX"));
    let altered = format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(altered.to_string()));
    let mut without_kid = Header::new(Algorithm::RS256);
    without_kid.typ = Some("at+jwt".to_owned());

    let signed = |claims: Value| key.sign("k1", "at+jwt", &claims);
    let table = [
        ("expired", signed(with(good.clone(), "exp", json!(now() - 6)))),
        ("not valid yet", signed(with(good.clone(), "nbf", json!(now() + 60)))),
        ("expiry is a word", signed(with(good.clone(), "exp", json!("tomorrow")))),
        ("no expiry", signed(with(good.clone(), "exp", Value::Null))),
        ("other audience", signed(with(good.clone(), "aud", json!("elsewhere")))),
        ("no audience", signed(with(good.clone(), "aud", Value::Null))),
        (
            "other issuer",
            signed(with(good.clone(), "iss", json!("http://elsewhere"))),
        ),
        ("no issuer", signed(with(good.clone(), "iss", Value::Null))),
        ("no client", signed(with(good.clone(), "client_id", Value::Null))),
        ("ID token", key.sign("k1", "JWT", &good)),
        ("signed by another key", stranger.sign("k1", "at+jwt", &good)),
        (
            "no kid",
            jsonwebtoken::encode(&without_kid, &good, &key.private).expect("a token"),
        ),
        ("algorithm none", none),
        ("HS256 keyed with the public key", public_as_secret),
        ("claims altered after signing", altered),
        ("too long", format!("{token}{}", "x".repeat(9000))),
        ("no JWT", "opaque".to_owned()),
        ("empty", String::new()),
    ];
    for (what, token) in table {
        let outcome = verifier.verify(&token).await;
        assert!(
            matches!(outcome, Err(AuthError::InvalidToken(_))),
            "{what}: {outcome:?}"
        );
    }
    let mut extended = Header::new(Algorithm::RS256);
    extended.kid = Some("k1".to_owned());
    extended.typ = Some("at+jwt".to_owned());
    extended.crit = Some(vec!["x-check-this".to_owned()]);
    let extended = jsonwebtoken::encode(&extended, &good, &key.private).expect("a token");
    assert!(verifier.verify(&extended).await.is_err(), "an extension nobody knows");
    let within_leeway = signed(with(good, "exp", json!(now() - 2)));
    assert!(
        verifier.verify(&within_leeway).await.is_ok(),
        "clocks may differ by some seconds"
    );
}

#[tokio::test]
async fn an_issuer_that_names_things_differently_is_configured() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let pairs = [
        ("IT_AUTH_ISSUER", issuer.url.as_str()),
        ("IT_AUTH_TOKEN_TYPE", "JWT"),
        ("IT_AUTH_TENANT_CLAIM", "https://example.org/organisation"),
    ];
    let verifier = Verifier::new(&chassis::config::parse_from("it", &pairs).expect("good")).expect("good");
    let claims = json!({
        "iss": issuer.url, "aud": ["account", "rowlock"], "sub": "ada", "azp": "app", "exp": now() + 300,
        "scp": ["tours:read"], "tenant": "NORDEX", "https://example.org/organisation": "BEHNGT",
    });
    let claims = verifier.verify(&key.sign("k1", "JWT", &claims)).await.expect("good");
    assert_eq!(
        (claims.client_id.as_str(), claims.tenant.as_deref()),
        ("app", Some("BEHNGT"))
    );
    assert_eq!(claims.scopes, ["tours:read"]);
    let ours = key.sign("k1", "at+jwt", &issuer.claims());
    assert!(verifier.verify(&ours).await.is_err(), "the type is the configured one");
}
