//! What must stay secret is in nothing the service prints, exports or answers, whatever it is asked.

use reqwest::{Client, Method};
use serde_json::json;
use testkit::{Collector, Process, Search};
use uuid::Uuid;

use crate::support::{Database, Issuer, Names, eventually, forged_signature, payload, server, variables};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_printed_exported_shown_or_sent_back() {
    let (database, issuer, names) = (Database::create().await, Issuer::start().await, Names::new());
    let collector = Collector::start().await;
    let endpoint = collector.endpoint();
    let (amqp, redis) = (Names::amqp(), server("ROWLOCK_TEST_REDIS"));
    let settings = [
        ("TOUR_DATA_AUTH_ISSUER", issuer.url.as_str()),
        ("TOUR_DATA_EXCHANGE", names.exchange.as_str()),
        ("TOUR_DATA_QUEUE", names.queue.as_str()),
        ("TOUR_DATA_LOG", "trace"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
    ];
    let variables = variables(&database.url(), &redis, &amqp, &settings);
    let pairs: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let process = Process::serve(env!("CARGO_BIN_EXE_tour-data"), &pairs);

    let mut search = Search::default();
    search.password_of("database password", &database.url());
    search.password_of("broker password", &amqp);
    let good = issuer.token(Some("BEHNGT"), "tours:read tours:write");
    let foreign = issuer.token(Some("NORDEX"), "tours:read tours:write");
    let narrow = issuer.token(Some("BEHNGT"), "tours:read");
    let forged = forged_signature(
        &json!({"typ": "at+jwt", "alg": "RS256", "kid": "test"}),
        &json!({"sub": "me"}),
    );
    for (what, token) in [
        ("good token", &good),
        ("foreign token", &foreign),
        ("narrow token", &narrow),
        ("forged token", &forged),
    ] {
        search.secret(what, token);
    }
    let http = Client::builder().no_proxy().build().expect("a client");
    let request = |method: Method, path: &str| http.request(method, format!("http://{}{path}", process.http));
    let tours = |token: &str| {
        request(Method::POST, "/api/v1/tours")
            .bearer_auth(token)
            .json(&payload())
    };

    let key = Uuid::new_v4().to_string();
    eventually("a tour is created", async || {
        let answer = tours(&good).header("idempotency-key", &key).send().await;
        answer.is_ok_and(|answer| answer.status() == 201).then_some(())
    })
    .await;
    search.refused("a foreign token", tours(&foreign)).await;
    search.refused("a narrow token", tours(&narrow)).await;
    search.refused("a forged token", tours(&forged)).await;
    search.refused("a cut token", tours(&good[..good.len() - 3])).await;
    let in_the_url = request(Method::GET, &format!("/api/v1/tours?access_token={good}"));
    search.refused("a token in the query", in_the_url).await;
    let as_field = request(Method::POST, "/api/v1/tours")
        .bearer_auth(&good)
        .json(&json!({ "tourNumber": 1 }));
    search.refused("a tour that is none", as_field).await;
    // A statement that fails inside the server, with the service's sessions in the error.
    sqlx::query("ALTER TABLE tour RENAME TO tour_away")
        .execute(&database.pool)
        .await
        .expect("renames");
    search.refused("a tour without its table", tours(&good)).await;

    search.end(&http, process, &collector).await;
    search.expect("the telemetry", "/api/v1/tours");
    search.expect("the log", "does not exist");
    search.expect("/config", "db_url");
    search.assert_hidden();
}
