//! Puts an [`HttpTarget`] together; everything that can be wrong is found here, not under load.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode, header};

use super::repeat::Repeat;
use super::request::Request;
use super::template::Template;
use super::token::{Token, Tokens};
use super::{Exchange, Hook, HttpTarget};
use crate::error::LoadError;
use crate::target::Failure;
use crate::url::Url;

/// Builds an [`HttpTarget`]; see [`HttpTarget::builder`].
pub struct HttpBuilder {
    method: Method,
    url: Url,
    headers: Vec<(String, String)>,
    body: String,
    expect: Option<StatusCode>,
    timeout: Duration,
    token: Token,
    hook: Option<Hook>,
    repeat: Option<Repeat>,
}

impl std::fmt::Debug for HttpBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpBuilder")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl HttpTarget {
    /// Starts with a request that has no body and no token, expects any 2xx and times out after 30 s.
    pub fn builder(method: Method, url: Url) -> HttpBuilder {
        HttpBuilder {
            method,
            url,
            headers: Vec::new(),
            body: String::new(),
            expect: None,
            timeout: Duration::from_secs(30),
            token: Token::None,
            hook: None,
            repeat: None,
        }
    }
}

impl HttpBuilder {
    /// Adds a header. Its value is a template like the body.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body's template. `{{uuid}}` becomes a random UUID and `{{sequence}}` the number of the request, from 1;
    /// within one request each is the same wherever it stands, headers included.
    pub fn body(mut self, template: impl Into<String>) -> Self {
        self.body = template.into();
        self
    }

    /// Sends a bearer token.
    pub fn token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    /// Counts every other status as an error.
    pub fn expect_status(mut self, status: StatusCode) -> Self {
        self.expect = Some(status);
        self
    }

    /// Bounds a request, its connection attempt included; a token request is bounded by the same time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Repeats a request that got no answer, or 429, 502, 503 or 504, until it gets another or `bound` has passed since it
    /// was first sent. `{{uuid}}` and `{{sequence}}` stay: sent as an idempotency key it is the same request to the
    /// server. Waits as long as `Retry-After` says, else 50 ms, doubled each time up to 1 s.
    pub fn repeat(mut self, bound: Duration) -> Self {
        self.repeat = Some(Repeat::within(bound));
        self
    }

    /// Calls `hook` with every complete answer, whatever its status, after the timed part. When the status is right and
    /// the hook fails, the iteration counts as failed. Runs on the engine's thread.
    pub fn on_response(mut self, hook: impl Fn(&Exchange<'_>) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Checks it all.
    pub fn build(self) -> Result<HttpTarget, LoadError> {
        if self.timeout.is_zero() {
            return Err(LoadError::Request(
                "a request timeout of 0 fails every request; give it some time".into(),
            ));
        }
        if self.method == Method::CONNECT {
            return Err(LoadError::Request(
                "CONNECT asks for a tunnel and not for an answer; no load is made of it".into(),
            ));
        }
        let mut headers = vec![(header::HOST, Template::text(self.url.authority()))];
        let tokens = Tokens::new(self.token).map(Arc::new);
        for (name, value) in self.headers {
            let wrong = |reason: String| LoadError::Request(format!("the header `{name}: {value}` {reason}"));
            let parsed: HeaderName = name.parse().map_err(|_| wrong("has no valid name".into()))?;
            HeaderValue::from_str(&value).map_err(|_| wrong("has no valid value".into()))?;
            let template = Template::parse(&value).map_err(|reason| wrong(format!("is wrong: {reason}")))?;
            if parsed == header::CONTENT_LENGTH || parsed == header::TRANSFER_ENCODING {
                return Err(wrong("is told by the engine, which knows the body".into()));
            }
            if parsed == header::HOST {
                headers[0].1 = template;
                continue;
            }
            // The token's header takes the place of one that was given.
            if parsed != header::AUTHORIZATION || tokens.is_none() {
                headers.push((parsed, template));
            }
        }
        let body = Template::parse(&self.body)
            .map_err(|reason| LoadError::Request(format!("the body's template is wrong: {reason}")))?;
        let fixed = headers
            .iter()
            .map(|(_, value)| value)
            .chain([&body])
            .all(Template::is_fixed);
        let uri = self.url.target();
        Ok(HttpTarget {
            address: self.url.address(),
            request: Request::new(&self.method, &uri, headers, body),
            uri,
            method: self.method,
            expect: self.expect,
            timeout: self.timeout,
            tokens,
            unique: self.hook.is_some() || !fixed,
            hook: self.hook,
            repeat: self.repeat,
            sequence: AtomicU64::new(0),
        })
    }
}
