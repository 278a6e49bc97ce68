//! Bearer tokens from an OAuth 2.0 token endpoint (client credentials).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use tokio::time::timeout;

use super::connection::{Client, Keep};
use super::request::Request;
use super::template::{Template, Unique};
use crate::target::{Failure, Kind};
use crate::url::Url;

/// A token is replaced this long before it expires, or after four fifths of its life if that is earlier to leave less.
const MARGIN: Duration = Duration::from_secs(30);
/// How long a refresh that failed is left alone while the old token is still good.
const RETRY: Duration = Duration::from_secs(1);

/// Without `expires_in`, which RFC 6749 only recommends, and at most, a token is taken to live for a year: longer than any load.
const LONGEST_LIFE_S: u64 = 365 * 24 * 3600;

/// How a request gets its bearer token.
#[derive(Debug, Clone)]
pub enum Token {
    /// It has none.
    None,
    /// One for all users, replaced before it expires, never in the timed part.
    Once(TokenSource),
    /// A new one before each request, on a second connection of the user.
    PerIteration {
        /// Where it comes from.
        source: TokenSource,
        /// Whether getting it is part of the published latency.
        timed: bool,
    },
}

/// A token endpoint and the client that asks it.
#[derive(Clone)]
pub struct TokenSource {
    /// The endpoint.
    pub url: Url,
    /// The client's identifier.
    pub client_id: String,
    /// The client's secret.
    pub client_secret: String,
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSource")
            .field("url", &self.url)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The token side of a target.
pub(super) struct Tokens {
    endpoint: Endpoint,
    mode: Mode,
}

enum Mode {
    Shared {
        current: Mutex<Option<Current>>,
        /// Held by the user who fetches, so that an expiry is one request and not one per user.
        refresh: tokio::sync::Mutex<()>,
    },
    Own {
        timed: bool,
    },
}

#[derive(Clone)]
struct Current {
    bearer: HeaderValue,
    refresh_at: Instant,
    expires_at: Instant,
}

/// The token side of a user.
pub(super) struct UserTokens {
    tokens: Arc<Tokens>,
    client: Client,
}

impl std::fmt::Debug for UserTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserTokens").finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn new(token: Token) -> Option<Self> {
        let (source, mode) = match token {
            Token::None => return None,
            Token::Once(source) => (
                source,
                Mode::Shared {
                    current: Mutex::new(None),
                    refresh: tokio::sync::Mutex::new(()),
                },
            ),
            Token::PerIteration { source, timed } => (source, Mode::Own { timed }),
        };
        Some(Self {
            endpoint: Endpoint::new(&source),
            mode,
        })
    }

    pub(super) fn user(self: &Arc<Self>, timeout: Duration) -> UserTokens {
        let client = Client::new(self.endpoint.url.address(), timeout);
        UserTokens {
            tokens: Arc::clone(self),
            client,
        }
    }
}

impl UserTokens {
    /// Whether getting a token belongs to the published latency.
    pub(super) fn timed(&self) -> bool {
        matches!(self.tokens.mode, Mode::Own { timed: true })
    }

    /// The value of the `Authorization` header for the next request.
    pub(super) async fn bearer(&mut self) -> Result<HeaderValue, Failure> {
        let endpoint = &self.tokens.endpoint;
        let (current, refresh) = match &self.tokens.mode {
            Mode::Own { .. } => return Ok(endpoint.fetch(&mut self.client).await?.bearer),
            Mode::Shared { current, refresh } => (current, refresh),
        };
        let read = || current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = read();
        let now = Instant::now();
        let _fetching = match known {
            Some(token) if now < token.refresh_at => return Ok(token.bearer),
            Some(token) if now < token.expires_at => match refresh.try_lock() {
                Ok(fetching) => fetching,
                Err(_) => return Ok(token.bearer),
            },
            // Whoever fetches it is bounded; a queue of those who failed is not.
            _ => timeout(self.client.timeout(), refresh.lock())
                .await
                .map_err(|_| Failure::new(Kind::Token, format!("no token from {} in time", endpoint.url)))?,
        };
        // Another user may have fetched it while this one waited.
        let known = read();
        if let Some(token) = known.as_ref().filter(|token| Instant::now() < token.refresh_at) {
            return Ok(token.bearer.clone());
        }
        let fetched = endpoint.fetch(&mut self.client).await;
        // Refreshes are rare: an open connection for each user who ever did one would only be closed by the server.
        self.client.close();
        let now = Instant::now();
        let token = match (fetched, known) {
            (Ok(token), _) => token,
            (Err(_), Some(old)) if now < old.expires_at => Current {
                refresh_at: now + RETRY,
                ..old
            },
            (Err(failure), _) => return Err(failure),
        };
        let bearer = token.bearer.clone();
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(bearer)
    }
}

struct Endpoint {
    url: Url,
    request: Request,
}

impl Endpoint {
    fn new(source: &TokenSource) -> Self {
        let headers = [
            (header::HOST, source.url.authority()),
            (header::CONTENT_TYPE, "application/x-www-form-urlencoded"),
            (header::ACCEPT, "application/json"),
        ];
        let (id, secret) = (form_encode(&source.client_id), form_encode(&source.client_secret));
        let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
        let request = Request::new(
            &Method::POST,
            &source.url.target(),
            headers.map(|(name, value)| (name, Template::text(value))),
            Template::text(&form),
        );
        Self {
            url: source.url.clone(),
            request,
        }
    }

    async fn fetch(&self, client: &mut Client) -> Result<Current, Failure> {
        let failed = |reason: String| Failure::new(Kind::Token, format!("no token from {}: {reason}", self.url));
        let asked = Instant::now();
        self.request.render(&Unique::new(0, false), None, client.request());
        let status = client
            .exchange(false, Keep::Whole, asked)
            .await
            .map_err(|failure| failed(failure.detail))?;
        if status != StatusCode::OK {
            return Err(failed(format!("{status}: {}", String::from_utf8_lossy(client.body()))));
        }
        let granted: Granted<'_> =
            serde_json::from_slice(client.body()).map_err(|error| failed(format!("not a token response: {error}")))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", granted.access_token))
            .map_err(|_| failed("the token has characters that no header can carry".into()))?;
        bearer.set_sensitive(true);
        let life = Duration::from_secs(
            granted
                .expires_in
                .map_or(LONGEST_LIFE_S, |life| life.min(LONGEST_LIFE_S)),
        );
        let margin = MARGIN.min(life / 5);
        Ok(Current {
            bearer,
            refresh_at: asked + life - margin,
            expires_at: asked + life,
        })
    }
}

#[derive(Deserialize)]
struct Granted<'a> {
    #[serde(borrow)]
    access_token: std::borrow::Cow<'a, str>,
    expires_in: Option<u64>,
}

/// application/x-www-form-urlencoded, as RFC 6749 asks of credentials.
fn form_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => out.push(byte as char),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_form_encoded() {
        assert_eq!(form_encode("rowlock-load"), "rowlock-load");
        assert_eq!(form_encode("a b&c=d/ü"), "a+b%26c%3Dd%2F%C3%BC");
    }
}
