//! Forwards a request to a replica and its answer back, both as streams.

mod download;
mod headers;
mod metrics;
mod problems;
mod retry;
mod upload;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use chassis::deadline::{self, Deadline};
use chassis::problem::Problem;
use http::request::Parts;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Method, Uri, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::config::Config;
use crate::endpoints::{Replica, Rotation};

use download::Download;
pub(crate) use headers::X_FORWARDED_FOR;
use metrics::{Metrics, Outcome};
use retry::Budget;
use upload::{Failure, Upload, UploadBody};

/// Below the time after which a replica closes a connection that rests, so that a request rarely meets one that is
/// just being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(15);

/// The pooled client and its limits.
pub(crate) struct Proxy {
    client: Client<HttpConnector, UploadBody>,
    timeout: Duration,
    body_limit: u64,
    budget: Budget,
    metrics: Metrics,
}

/// What every attempt at one request has in common.
struct Outgoing {
    method: Method,
    path: PathAndQuery,
    headers: HeaderMap,
    upload: Arc<Upload>,
    /// Could be sent twice without being carried out twice.
    repeatable: bool,
    /// The client's, or the edge's own if that is earlier.
    deadline: Deadline,
}

impl Proxy {
    pub(crate) fn new(config: &Config) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(*config.connect_timeout));
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_CONNECTION)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self {
            client,
            timeout: *config.upstream_timeout,
            body_limit: config.body_limit,
            budget: Budget::new(),
            metrics: Metrics::new(),
        }
    }

    /// Sends `request` to the replica whose turn it is. `route` is the template of the path, for metrics.
    ///
    /// Dropping the future, which is what a client that disconnects does, ends the exchange with the replica.
    pub(crate) async fn forward(&self, rotation: &Rotation, route: &'static str, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        let peer = parts
            .extensions
            .get::<ConnectInfo<SocketAddr>>()
            .map(|ConnectInfo(peer)| *peer);
        let request_id = headers::for_upstream(&mut parts.headers, peer);
        let mut response = match self.exchange(rotation, route, parts, body).await {
            Ok(response) => self.answer(response),
            Err(problem) => problem.into_response(),
        };
        response
            .headers_mut()
            .entry(headers::X_REQUEST_ID)
            .or_insert(request_id);
        response
    }

    async fn exchange(
        &self,
        rotation: &Rotation,
        route: &'static str,
        parts: Parts,
        body: Body,
    ) -> Result<http::Response<Incoming>, Problem> {
        let repeatable = retry::is_repeatable(&parts.method, &parts.headers, rotation.keys());
        let upload = Upload::new(body, self.body_limit, repeatable).map_err(|body| {
            chassis::body::discard(body);
            problems::body_too_large(self.body_limit)
        })?;
        let own = Deadline::within(self.timeout);
        let outgoing = Outgoing {
            method: parts.method,
            path: parts
                .uri
                .into_parts()
                .path_and_query
                .unwrap_or(PathAndQuery::from_static("/")),
            headers: parts.headers,
            upload,
            repeatable,
            deadline: Deadline::current().map_or(own, |clients| clients.min(own)),
        };
        self.budget.deposit();
        tokio::time::timeout_at(outgoing.deadline.at(), self.attempts(rotation, route, &outgoing))
            .await
            .unwrap_or_else(|_| {
                if outgoing.upload.waits_for_client() {
                    return Err(problems::client_too_slow());
                }
                tracing::warn!(backend = rotation.service(), route, "no answer in time");
                Err(problems::upstream_timeout(
                    rotation.service(),
                    outgoing.deadline.budget(),
                ))
            })
    }

    /// Tries one replica after the other, as far as [`retry`] allows.
    async fn attempts(
        &self,
        rotation: &Rotation,
        route: &'static str,
        outgoing: &Outgoing,
    ) -> Result<http::Response<Incoming>, Problem> {
        let mut candidates = rotation.candidates();
        let mut broken = false;
        while let Some(replica) = candidates.next(Instant::now()) {
            if broken {
                if !self.budget.withdraw() {
                    tracing::warn!(
                        backend = rotation.service(),
                        "no request is repeated: the budget is used up"
                    );
                    break;
                }
                self.metrics.repeated(rotation.service());
            }
            let error = match self.attempt(replica, route, outgoing).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match outgoing.upload.failure() {
                Some(Failure::TooLarge) => return Err(problems::body_too_large(self.body_limit)),
                Some(Failure::TooSlow) => return Err(problems::client_too_slow()),
                Some(Failure::Broken) => return Err(problems::body_broken()),
                None => {}
            }
            tracing::warn!(backend = rotation.service(), replica = %replica.address(), cause = %chain(&error), "a replica failed a request");
            if error.is_connect() {
                replica.pass_over(Instant::now());
                continue;
            }
            broken = true;
            if !outgoing.repeatable {
                break;
            }
        }
        if broken {
            return Err(problems::upstream_broken(rotation.service()));
        }
        Err(problems::no_replica(rotation.service()))
    }

    async fn attempt(
        &self,
        replica: &Replica,
        route: &'static str,
        outgoing: &Outgoing,
    ) -> Result<http::Response<Incoming>, legacy::Error> {
        let mut request = http::Request::new(outgoing.upload.body());
        *request.method_mut() = outgoing.method.clone();
        *request.uri_mut() = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(replica.authority().clone())
            .path_and_query(outgoing.path.clone())
            .build()
            .expect("scheme, authority and path make a URI");
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = outgoing.headers.clone();
        request
            .headers_mut()
            .insert(deadline::HEADER, outgoing.deadline.to_header());
        let started = self.metrics.start(replica, &outgoing.method, route);
        let result = self.client.request(request).await;
        started.record(match &result {
            Ok(response) => Outcome::Status(response.status()),
            Err(_) if outgoing.upload.failure().is_some() => Outcome::Error("client_body"),
            Err(error) if error.is_connect() => Outcome::Error("connect"),
            Err(_) => Outcome::Error("connection_broken"),
        });
        result
    }

    fn answer(&self, response: http::Response<Incoming>) -> Response {
        let (mut parts, body) = response.into_parts();
        headers::strip_hop_by_hop(&mut parts.headers);
        // The client side negotiates its own version.
        parts.version = Version::HTTP_11;
        Response::from_parts(
            parts,
            Body::new(Download::new(body, self.timeout).map_err(axum::Error::new)),
        )
    }
}

/// The client's errors name the layer that failed, their sources the reason.
fn chain(error: &legacy::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
