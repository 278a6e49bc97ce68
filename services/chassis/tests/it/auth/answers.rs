//! What clients are told (RFC 6750).

use axum::{
    Router,
    body::Body,
    extract::{FromRef, State},
    http::{Request, StatusCode, header},
    routing::get,
};
use chassis::{
    auth::{Bearer, Verifier},
    problem::Problem,
};
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::{Issuer, Key, config, with};

#[derive(Clone)]
struct App(Verifier);

impl FromRef<App> for Verifier {
    fn from_ref(app: &App) -> Self {
        app.0.clone()
    }
}

async fn write(_: State<App>, Bearer(claims): Bearer) -> Result<String, Problem> {
    claims.require_scope("tours:write")?;
    Ok(claims.client_id)
}

/// Status, challenge and `Retry-After` of a request with these `Authorization` headers.
async fn answer(verifier: Verifier, authorization: &[&str]) -> (StatusCode, String, bool) {
    let mut request = Request::get("/");
    for value in authorization {
        request = request.header(header::AUTHORIZATION, *value);
    }
    let app = Router::new().route("/", get(write)).with_state(App(verifier));
    let response = app
        .oneshot(request.body(Body::empty()).expect("a request"))
        .await
        .expect("an answer");
    let challenge = response
        .headers()
        .get(header::WWW_AUTHENTICATE)
        .map(|value| value.to_str().expect("ASCII"));
    let retry = response.headers().contains_key(header::RETRY_AFTER);
    (response.status(), challenge.unwrap_or_default().to_owned(), retry)
}

#[tokio::test]
async fn answers_follow_rfc_6750() {
    let key = Key::generate("k1");
    let issuer = Issuer::start(&[&key]).await;
    let verifier = issuer.verifier();
    let good = format!("Bearer {}", key.sign("k1", "at+jwt", &issuer.claims()));
    let reader = with(issuer.claims(), "scope", json!("tours:read"));
    let reader = format!("bearer {}", key.sign("k1", "at+jwt", &reader));

    assert_eq!(
        answer(verifier.clone(), &[&good]).await,
        (StatusCode::OK, String::new(), false)
    );
    let realm = r#"Bearer realm="rowlock""#.to_owned();
    for missing in [&[][..], &["Basic dXNlcjpwYXNz"][..]] {
        assert_eq!(
            answer(verifier.clone(), missing).await,
            (StatusCode::UNAUTHORIZED, realm.clone(), false)
        );
    }
    for invalid in [&["Bearer nonsense"][..], &[good.as_str(), good.as_str()][..]] {
        let (status, challenge, _) = answer(verifier.clone(), invalid).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(challenge.contains(r#"error="invalid_token""#), "{challenge}");
    }
    let (status, challenge, _) = answer(verifier, &[&reader]).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(
        challenge.contains(r#"error="insufficient_scope", scope="tours:write""#),
        "{challenge}"
    );

    let nobody = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port")
        .local_addr()
        .expect("bound");
    let orphan = Verifier::new(&config(&format!("http://{nobody}"))).expect("a good configuration");
    let (status, _, retry) = answer(orphan, &[&good]).await;
    assert_eq!(
        (status, retry),
        (StatusCode::SERVICE_UNAVAILABLE, true),
        "the client is told to try again"
    );
}
