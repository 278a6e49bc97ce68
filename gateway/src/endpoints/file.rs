//! The format of the endpoints file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde::Deserialize;

/// `{"services":{"tour-data":[{"http":"127.0.0.1:1","admin":"127.0.0.1:2"}],"user":[…]}}`. Services the edge does not
/// route to, and members it does not need (such as `admin`), are for other readers of the file.
#[derive(Debug, Deserialize)]
pub(super) struct EndpointsFile {
    services: BTreeMap<String, Vec<Entry>>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    http: SocketAddr,
}

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("cannot be read ({0})")]
    Unreadable(#[from] std::io::Error),
    #[error("is malformed ({0})")]
    Malformed(#[from] serde_json::Error),
}

impl EndpointsFile {
    pub(super) fn read(path: &Path) -> Result<Self, Unusable> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// None for a service that is not in the file.
    pub(super) fn replicas(&self, service: &str) -> Vec<SocketAddr> {
        self.services
            .get(service)
            .into_iter()
            .flatten()
            .map(|entry| entry.http)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_for_other_readers_are_ignored() {
        let file: EndpointsFile = serde_json::from_str(
            r#"{"version":3,"services":{"post":[],"user":[{"http":"127.0.0.1:1","admin":"127.0.0.1:2"}]}}"#,
        )
        .expect("the file is good");
        assert_eq!(file.replicas("user"), ["127.0.0.1:1".parse().expect("is an address")]);
        assert!(file.replicas("tour-data").is_empty());
    }

    #[test]
    fn half_a_file_and_a_wrong_address_are_malformed() {
        for text in [
            "{\"services\":{\"user\":[",
            "{}",
            r#"{"services":{"user":[{"http":"localhost"}]}}"#,
        ] {
            assert!(serde_json::from_str::<EndpointsFile>(text).is_err(), "{text}");
        }
    }
}
