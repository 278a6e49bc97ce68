//! What happens to headers on their way through.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{
    CONNECTION, EXPECT, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderValue};
use uuid::Uuid;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// RFC 9110, section 7.6.1, with the older names that are still seen.
static HOP_BY_HOP: [HeaderName; 8] = [
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what is meant for one connection only, including what `Connection` names.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        headers.remove(CONNECTION);
        for name in named {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Makes a client's headers those of the request to a replica. Returns the request id, for the answer.
///
/// `X-Forwarded-For` grows by the peer; host and protocol are kept if a proxy in front has set them, since it saw what
/// the client sent.
pub(super) fn for_upstream(headers: &mut HeaderMap, peer: Option<SocketAddr>) -> HeaderValue {
    strip_hop_by_hop(headers);
    // The body is asked for when the replica takes it; the replica need not ask again.
    headers.remove(EXPECT);
    if let Some(host) = headers.remove(HOST)
        && !headers.contains_key(X_FORWARDED_HOST)
    {
        headers.insert(X_FORWARDED_HOST, host);
    }
    if !headers.contains_key(X_FORWARDED_PROTO) {
        headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
    }
    if let Some(value) = peer.and_then(|peer| forwarded_for(headers, peer)) {
        headers.insert(X_FORWARDED_FOR, value);
    }
    chassis::telemetry::inject_http(headers);
    headers.entry(X_REQUEST_ID).or_insert_with(new_request_id).clone()
}

fn forwarded_for(headers: &HeaderMap, peer: SocketAddr) -> Option<HeaderValue> {
    let mut list = Vec::new();
    for earlier in headers.get_all(X_FORWARDED_FOR) {
        list.extend_from_slice(earlier.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(peer.ip().to_string().as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(list)).ok()
}

/// A random half that names this process and a counter: unique, and without the system call that a fresh random id costs
/// each request.
fn new_request_id() -> HeaderValue {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = Uuid::from_u64_pair(*PROCESS, NEXT.fetch_add(1, Ordering::Relaxed));
    let mut buffer = Uuid::encode_buffer();
    HeaderValue::from_str(id.hyphenated().encode_lower(&mut buffer)).expect("a UUID is a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn peer() -> Option<SocketAddr> {
        Some(SocketAddr::from(([10, 0, 0, 9], 4711)))
    }

    #[test]
    fn headers_of_one_connection_are_removed_and_others_stay() {
        let mut map = headers(&[
            ("connection", "close, X-Secret-Hop"),
            ("x-secret-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic x"),
            ("authorization", "Bearer x"),
        ]);
        strip_hop_by_hop(&mut map);
        assert_eq!(map, headers(&[("authorization", "Bearer x")]));
    }

    #[test]
    fn the_peer_is_appended_and_the_first_proxy_tells_host_and_protocol() {
        let mut map = headers(&[
            ("host", "inner"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-host", "shop.example"),
            ("x-forwarded-proto", "https"),
        ]);
        for_upstream(&mut map, peer());
        assert_eq!(map[X_FORWARDED_FOR], "1.2.3.4, 10.0.0.9");
        assert_eq!(map[X_FORWARDED_HOST], "shop.example");
        assert_eq!(map[X_FORWARDED_PROTO], "https");
        assert!(!map.contains_key(HOST));
    }

    #[test]
    fn without_a_proxy_in_front_the_edge_tells_host_and_protocol() {
        let mut map = headers(&[("host", "shop.example"), ("expect", "100-continue")]);
        for_upstream(&mut map, peer());
        assert_eq!(map[X_FORWARDED_FOR], "10.0.0.9");
        assert_eq!(map[X_FORWARDED_HOST], "shop.example");
        assert_eq!(map[X_FORWARDED_PROTO], "http");
        assert!(!map.contains_key(EXPECT));
    }

    #[test]
    fn a_request_id_is_kept_or_made() {
        let mut map = headers(&[("x-request-id", "from-outside")]);
        assert_eq!(for_upstream(&mut map, None), "from-outside");
        let mut map = HeaderMap::new();
        let made = for_upstream(&mut map, None);
        assert_eq!(map[X_REQUEST_ID], made);
        assert_ne!(for_upstream(&mut HeaderMap::new(), None), made);
    }
}
