//! JWKS and discovery documents.

use serde_json::{Value, json};

use crate::support::{Database, ISSUER, Issuer};

#[tokio::test]
async fn both_documents_name_the_endpoints_under_the_issuer() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    for path in [
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ] {
        let response = issuer.get(path).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["cache-control"], "public, max-age=3600");
        let document: Value = response.json().await.expect("is JSON");
        assert_eq!(document["issuer"], ISSUER);
        assert_eq!(document["token_endpoint"], format!("{ISSUER}/oauth2/token"));
        assert_eq!(document["jwks_uri"], format!("{ISSUER}/oauth2/jwks"));
        assert_eq!(
            document["introspection_endpoint"],
            format!("{ISSUER}/oauth2/introspect")
        );
        assert_eq!(document["revocation_endpoint"], format!("{ISSUER}/oauth2/revoke"));
        assert_eq!(
            document["grant_types_supported"],
            json!(["client_credentials", "password", "refresh_token"])
        );
    }
    issuer.stop().await;
    database.drop_it().await;
}

#[tokio::test]
async fn the_key_set_may_be_cached() {
    let database = Database::create().await;
    let issuer = Issuer::with_clients(&database).await;
    let response = issuer.get("/oauth2/jwks").await;
    assert_eq!(response.headers()["cache-control"], "public, max-age=300");
    issuer.stop().await;
    database.drop_it().await;
}
