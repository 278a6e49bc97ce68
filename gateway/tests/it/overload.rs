//! More requests than the edge works on at once.

use std::sync::Arc;

use axum::Router;
use chassis::config::Common;
use reqwest::{Method, Response};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::support::upstream::serve;
use crate::support::{Edge, EndpointsFile, assert_problem, eventually};

/// An edge with room for one request and one that waits, before a service that answers when it is let.
struct Crowded {
    edge: Arc<Edge>,
    reached: Arc<Notify>,
    answers: Arc<Semaphore>,
}

impl Crowded {
    async fn start(queue_timeout: &str) -> Self {
        let (reached, answers) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let (tell, wait) = (reached.clone(), answers.clone());
        let service = serve(Router::new().fallback(async move || {
            tell.notify_one();
            wait.acquire().await.expect("it is never closed").forget();
            "late"
        }))
        .await;
        let common = Common {
            max_in_flight: 1,
            queue_max: 1,
            queue_timeout: queue_timeout.parse().expect("a duration"),
            ..Common::default()
        };
        let edge = Edge::start_as(common, EndpointsFile::new(&[service], &[]), &[]).await;
        Self {
            edge: Arc::new(edge),
            reached,
            answers,
        }
    }

    fn send(&self) -> JoinHandle<Response> {
        let request = self.edge.request(Method::POST, "/api/v1/tours").body("{}");
        tokio::spawn(async { request.send().await.expect("answers") })
    }

    async fn metrics(&self) -> String {
        self.edge.admin("/metrics").await.text().await.expect("is text")
    }
}

#[tokio::test]
async fn beyond_room_and_queue_a_request_is_refused_before_its_token_is_looked_at() {
    let crowded = Crowded::start("1h").await;
    let first = crowded.send();
    crowded.reached.notified().await;
    let second = crowded.send();
    // Which of these comes before the second is not known until it waits; each is refused, or waits in its place.
    let answers = crowded.answers.clone();
    eventually("a request without a token is refused unseen", async || {
        let request = crowded
            .edge
            .anonymous(Method::POST, "/api/v1/tours")
            .body("{}")
            .timeout(std::time::Duration::from_millis(500));
        match request.send().await {
            Ok(response) => {
                assert_eq!(response.headers()["retry-after"], "1");
                assert_problem(response, 503, "overloaded").await;
                true
            }
            Err(error) => {
                assert!(error.is_timeout(), "{error}");
                false
            }
        }
    })
    .await;
    assert!(crowded.metrics().await.contains("http_server_shed_requests"));
    answers.add_permits(2);
    assert_eq!(first.await.expect("does not panic").status(), 200);
    assert_eq!(second.await.expect("does not panic").status(), 200, "it had its turn");
}

#[tokio::test]
async fn a_request_waits_for_its_turn_no_longer_than_the_bound() {
    let crowded = Crowded::start("50ms").await;
    let first = crowded.send();
    crowded.reached.notified().await;
    assert_problem(crowded.send().await.expect("does not panic"), 503, "overloaded").await;
    crowded.answers.add_permits(1);
    assert_eq!(first.await.expect("does not panic").status(), 200);
    crowded.answers.add_permits(1);
    // The place of the first is free again once its answer has been sent.
    eventually("there is room again", async || {
        crowded.answers.add_permits(1);
        crowded.send().await.expect("does not panic").status() == 200
    })
    .await;
}

#[tokio::test]
async fn a_verifiers_question_finds_a_place_when_all_are_taken_by_requests_that_may_wait_for_it() {
    let crowded = Crowded::start("1h").await;
    let first = crowded.send();
    crowded.reached.notified().await;
    // To nobody: being passed on, even in vain, is having found a place.
    let question = crowded
        .edge
        .anonymous(Method::POST, "/oauth2/introspect")
        .body("token=t");
    assert_problem(question.send().await.expect("answers"), 503, "no-replica").await;
    crowded.answers.add_permits(1);
    assert_eq!(first.await.expect("does not panic").status(), 200);
}
