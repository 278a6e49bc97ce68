//! Where a load is aimed: this machine, and nothing else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use http::uri::{PathAndQuery, Scheme, Uri};

use crate::error::LoadError;

/// An `http` URL on this machine's loopback interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    address: SocketAddr,
    authority: String,
    path: PathAndQuery,
}

impl Url {
    /// The address to connect to; `localhost` is 127.0.0.1.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value of the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The request target: path and query, without the host.
    pub(crate) fn target(&self) -> Uri {
        Uri::from(self.path.clone())
    }
}

impl FromStr for Url {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        let wrong = |reason: String| LoadError::Url {
            url: text.into(),
            reason,
        };
        let uri = Uri::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(wrong(
                "it must start with http://; the engine speaks plain HTTP/1.1 to this machine".into(),
            ));
        }
        let authority = uri.authority().ok_or_else(|| wrong("it has no host".into()))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "it carries credentials; give them as a header or a token source".into(),
            ));
        }
        let ip = match authority.host() {
            "127.0.0.1" | "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            "[::1]" => IpAddr::V6(Ipv6Addr::LOCALHOST),
            host => {
                let reason = "the engine only loads this machine (127.0.0.1, localhost or [::1]), so that a slip never \
                              becomes somebody else's outage";
                return Err(wrong(format!("`{host}` is not a loopback address, and {reason}")));
            }
        };
        let port = match (authority.port_u16(), authority.port()) {
            (Some(port), _) => port,
            (None, None) if !authority.as_str().ends_with(':') => 80,
            _ => return Err(wrong("its port is not a number between 0 and 65535".into())),
        };
        Ok(Self {
            address: SocketAddr::new(ip, port),
            authority: authority.as_str().into(),
            path: uri
                .path_and_query()
                .cloned()
                .unwrap_or_else(|| PathAndQuery::from_static("/")),
        })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_urls_are_accepted_with_their_port_path_and_query() {
        let url: Url = "http://127.0.0.1:8080/api/v1/tours?tenant=A".parse().unwrap();
        assert_eq!(url.address(), "127.0.0.1:8080".parse().unwrap());
        assert_eq!(url.target(), "/api/v1/tours?tenant=A");
        assert_eq!(url.to_string(), "http://127.0.0.1:8080/api/v1/tours?tenant=A");
        assert_eq!(
            "http://localhost".parse::<Url>().unwrap().address(),
            "127.0.0.1:80".parse().unwrap()
        );
        assert_eq!(
            "http://[::1]:9/".parse::<Url>().unwrap().address(),
            "[::1]:9".parse().unwrap()
        );
    }

    #[test]
    fn anything_but_loopback_over_http_is_refused_with_the_reason() {
        for (text, reason) in [
            ("http://example.com/", "`example.com` is not a loopback address"),
            ("http://10.0.0.1:80/", "only loads this machine"),
            ("http://127.0.0.1.example.com/", "is not a loopback address"),
            ("http://0.0.0.0:80/", "is not a loopback address"),
            ("https://127.0.0.1/", "must start with http://"),
            ("127.0.0.1:80", "must start with http://"),
            ("/path", "must start with http://"),
            ("http://user:pw@127.0.0.1/", "credentials"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains(reason), "{text}: {error}");
        }
    }
}
