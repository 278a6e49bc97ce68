//! Whose requests are counted together.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use crate::proxy::X_FORWARDED_FOR;

/// The bearer of a token, or the address of a client that has none yet. The two cannot be taken for one another,
/// whatever a subject is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    Token(&'a str),
    /// `None` for a peer that is not known: all of those share one quota.
    Address(Option<IpAddr>),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(subject) => write!(f, "sub:{subject}"),
            Self::Address(Some(address)) => write!(f, "addr:{address}"),
            Self::Address(None) => f.write_str("addr:unknown"),
        }
    }
}

impl Subject<'static> {
    /// The client behind `trusted` proxies, each of which has appended its own peer to `X-Forwarded-For`. What stands
    /// further left was written by the client itself, who would have as many quotas as it can think of addresses.
    pub(crate) fn of_client(headers: &HeaderMap, peer: Option<SocketAddr>, trusted: usize) -> Self {
        let peer = peer.map(|peer| peer.ip());
        let Some(further) = trusted.checked_sub(1) else {
            return Self::Address(peer);
        };
        let told: Vec<&str> = headers
            .get_all(X_FORWARDED_FOR)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .collect();
        let address = told.iter().rev().nth(further).and_then(|text| text.trim().parse().ok());
        Self::Address(address.or(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(forwarded: &[&str], trusted: usize) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(X_FORWARDED_FOR, value.parse().expect("a header"));
        }
        Subject::of_client(&headers, Some(SocketAddr::from(([10, 0, 0, 9], 4711))), trusted).to_string()
    }

    #[test]
    fn only_what_trusted_proxies_appended_is_believed() {
        let list = ["1.1.1.1, 2.2.2.2", "3.3.3.3"];
        assert_eq!(of(&list, 0), "addr:10.0.0.9");
        assert_eq!(of(&list, 1), "addr:3.3.3.3");
        assert_eq!(of(&list, 2), "addr:2.2.2.2");
        // Fewer than there should be, or nonsense: the peer is all that is known.
        assert_eq!(of(&[], 1), "addr:10.0.0.9");
        assert_eq!(of(&list, 9), "addr:10.0.0.9");
        assert_eq!(of(&["unknown"], 1), "addr:10.0.0.9");
    }

    #[test]
    fn a_subject_that_is_called_like_an_address_has_a_quota_of_its_own() {
        let address = Subject::Address(Some(IpAddr::from([10, 0, 0, 9])));
        assert_ne!(Subject::Token("10.0.0.9").to_string(), address.to_string());
    }
}
