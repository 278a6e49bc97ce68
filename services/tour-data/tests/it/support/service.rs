//! The service in this process, and a client for it.

use chassis::config::{Common, parse_from};
use chassis::service::{Running, Service, start};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tour_data::{Config, TourData};
use uuid::Uuid;

use super::{Database, Issuer, Names, eventually, server};

pub(crate) struct TourService {
    pub(crate) running: Running,
    pub(crate) issuer: Issuer,
    pub(crate) client: Client,
    pub(crate) names: Names,
    token: String,
}

/// A 201.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    pub(crate) id: Uuid,
    pub(crate) body: Value,
    pub(crate) replayed: bool,
}

/// Addresses, then whatever a test sets; a later value replaces an earlier one.
pub(crate) fn variables(db: &str, redis: &str, amqp: &str, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let addresses = [
        ("TOUR_DATA_DB_URL", db),
        ("TOUR_DATA_REDIS_URL", redis),
        ("TOUR_DATA_AMQP_URL", amqp),
        ("TOUR_DATA_AUTH_ISSUER", "http://127.0.0.1:1"),
    ];
    let mut variables: Vec<(String, String)> = Vec::new();
    for (name, value) in addresses.iter().chain(more) {
        variables.retain(|(known, _)| known != name);
        variables.push(((*name).to_owned(), (*value).to_owned()));
    }
    variables
}

pub(crate) fn config(variables: &[(String, String)]) -> Config {
    let pairs: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    parse_from(TourData::NAME, &pairs).expect("the configuration is good")
}

impl TourService {
    /// Started, and connected to its broker.
    pub(crate) async fn start(database: &Database, settings: &[(&str, &str)]) -> Self {
        Self::start_as::<TourData>(database, settings).await
    }

    /// The same of a service that is built in another way.
    pub(crate) async fn start_as<S: Service<Config = Config>>(database: &Database, settings: &[(&str, &str)]) -> Self {
        let (issuer, names) = (Issuer::start().await, Names::new());
        let own = [
            ("TOUR_DATA_AUTH_ISSUER", issuer.url.as_str()),
            ("TOUR_DATA_EXCHANGE", names.exchange.as_str()),
            ("TOUR_DATA_QUEUE", names.queue.as_str()),
            ("TOUR_DATA_TOUCH_QUEUE", names.touches.as_str()),
        ];
        let redis = server("ROWLOCK_TEST_REDIS");
        let variables = variables(&database.url(), &redis, &Names::amqp(), &[&own, settings].concat());
        // The instance's name is that of its database sessions.
        let common = Common {
            instance_id: Some(database.name.clone()),
            ..Common::default()
        };
        let running = start::<S>(common, config(&variables))
            .await
            .expect("the service starts");
        let token = issuer.token(Some("BEHNGT"), "tours:read tours:write");
        let service = Self {
            running,
            issuer,
            client: Client::new(),
            names,
            token,
        };
        service.wait_for("rabbitmq").await;
        service
    }

    /// The body of `/readyz` with its status.
    pub(crate) async fn readiness(&self) -> (StatusCode, Value) {
        let url = format!("http://{}/readyz", self.running.admin_addr);
        let response = self.client.get(url).send().await.expect("the admin port answers");
        (response.status(), response.json().await.expect("JSON"))
    }

    pub(crate) async fn wait_for(&self, dependency: &str) {
        let what = format!("{dependency} is there");
        eventually(&what, async || {
            let (_, report) = self.readiness().await;
            let found = report["dependencies"]
                .as_array()
                .expect("a list")
                .iter()
                .find(|one| one["name"] == dependency);
            (found.expect("it is named")["ok"] == true).then_some(())
        })
        .await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.http_addr)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Before it is sent, so that a test can change it.
    pub(crate) fn post(&self, tour: &Value, key: Option<&str>) -> RequestBuilder {
        let request = self
            .client
            .post(self.url("/api/v1/tours"))
            .bearer_auth(&self.token)
            .json(tour);
        match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        }
    }

    pub(crate) async fn create(&self, tour: &Value, key: Option<&str>) -> Posted {
        Self::created(self.post(tour, key).send().await.expect("an answer")).await
    }

    pub(crate) async fn created(response: Response) -> Posted {
        let (status, headers) = (response.status(), response.headers().clone());
        let body: Value = response.json().await.expect("JSON");
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let id = body["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        assert_eq!(headers["location"], format!("/api/v1/tours/{id}"));
        Posted {
            id,
            body,
            replayed: headers.get("idempotency-replayed").is_some_and(|value| value == "true"),
        }
    }

    /// Status and JSON of a GET with the tenant's token.
    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.get_as(path, &self.token).await
    }

    pub(crate) async fn get_as(&self, path: &str, token: &str) -> (StatusCode, Value) {
        let response = self
            .client
            .get(self.url(path))
            .bearer_auth(token)
            .send()
            .await
            .expect("an answer");
        (response.status(), response.json().await.expect("JSON"))
    }
}
