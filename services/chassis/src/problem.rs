//! Errors as clients see them: `application/problem+json` (RFC 9457), and the extractors that answer with them.
//!
//! A problem says what the client did and can do. What went wrong inside goes to the log, once, and never to the client.

mod path;
mod query;

use std::fmt;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::error::Category;
use serde_path_to_error::Segment;

pub use path::Path;
pub use query::Query;

use crate::body;

/// An error answer. `type` is `urn:rowlock:problem:<slug>`: an identifier, not a page to open.
///
/// Boxed, because it is the error type of most handlers and would otherwise make each of their results as large.
#[derive(Clone, Debug)]
pub struct Problem(Box<Members>);

#[derive(Clone, Debug, Serialize)]
struct Members {
    #[serde(rename = "type", serialize_with = "urn")]
    slug: &'static str,
    title: String,
    #[serde(serialize_with = "number")]
    status: StatusCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    #[serde(skip)]
    headers: HeaderMap,
}

impl Problem {
    /// `title` names the kind of problem in a few words and is the same at every occurrence of `slug`.
    pub fn new(status: StatusCode, slug: &'static str, title: impl Into<String>) -> Self {
        Self(Box::new(Members {
            slug,
            title: title.into(),
            status,
            detail: None,
            pointer: None,
            headers: HeaderMap::new(),
        }))
    }

    /// What happened this time: which value, and what to do.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The field of the request body at fault, as a JSON pointer (RFC 6901); `""` is the whole body.
    #[must_use]
    pub fn field(mut self, pointer: impl Into<String>) -> Self {
        self.0.pointer = Some(pointer.into());
        self
    }

    /// A header of the answer, such as `WWW-Authenticate`.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.append(name, value);
        self
    }

    /// When to try again, in whole seconds rounded up: the header has no finer unit.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// A failure of our own: logs the cause (this is the one place), and tells the client nothing of it.
    pub fn internal(error: impl fmt::Display) -> Self {
        tracing::error!(error = %error, "a request failed");
        Self::unexplained()
    }

    /// The 500 whose cause has been logged elsewhere.
    pub(crate) fn unexplained() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error")
            .detail("The service failed; its log has the cause under the trace id of this request.")
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            self.0.status.as_u16(),
            self.0.detail.as_deref().unwrap_or(&self.0.title)
        )
    }
}

impl std::error::Error for Problem {}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).expect("a problem is strings and a number");
        let mut response = (self.0.status, body).into_response();
        response.headers_mut().extend(self.0.headers);
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

fn urn<S: Serializer>(slug: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("urn:rowlock:problem:{slug}"))
}

fn number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// JSON in and out, like `axum::Json`, except that what cannot be read is answered with a [`Problem`] that points at
/// the field.
///
/// A type that is a struct all the way down takes no member twice: serde's derive refuses it. One with a map or a
/// `serde_json::Value` in it would keep the last of two without a word.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> Json<T> {
    /// Where in a body an error lies is looked for only when there is one: keeping track of it copies the name of every
    /// member, and most bodies are right.
    fn from_bytes(body: &[u8]) -> Result<T, Problem> {
        serde_json::from_slice(body).or_else(|_| Self::located(body))
    }

    fn located(body: &[u8]) -> Result<T, Problem> {
        let mut reader = serde_json::Deserializer::from_slice(body);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| unreadable(&error))?;
        reader.end().map_err(|error| syntax(&error).field(""))?;
        Ok(value)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-media-type",
                "Unsupported media type",
            )
            .detail("Send the body with Content-Type: application/json."));
        }
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            let status = rejection.status();
            if body::is_too_slow(&rejection) {
                Problem::new(StatusCode::REQUEST_TIMEOUT, "request-timeout", "Request timeout")
                    .detail("The request body did not arrive in time.")
            } else if status == StatusCode::PAYLOAD_TOO_LARGE {
                Problem::new(status, "body-too-large", "Body too large").detail(rejection.body_text())
            } else {
                Problem::new(status, "unreadable-body", "Unreadable body").detail(rejection.body_text())
            }
        })?;
        Self::from_bytes(&body).map(Json)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::internal(error).into_response(),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn unreadable(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let problem = match error.inner().classify() {
        Category::Data => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-body", "Invalid body")
            .detail(error.inner().to_string()),
        Category::Syntax | Category::Eof | Category::Io => syntax(error.inner()),
    };
    problem.field(pointer(error.path()))
}

fn syntax(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "malformed-json", "Malformed JSON").detail(error.to_string())
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            // A variant's name is the value's tag, not a member of the document; nothing below "unknown" has a name.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}
