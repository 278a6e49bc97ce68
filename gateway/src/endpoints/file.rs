//! The format of the endpoints file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde::Deserialize;

/// `{"services":{"tour-data":[{"http":"127.0.0.1:1","admin":"127.0.0.1:2"}],"user":[…]}}`. Services the edge does not
/// route to, and members it does not know, are for other readers of the file.
#[derive(Debug, Deserialize)]
pub(super) struct EndpointsFile {
    services: BTreeMap<String, Vec<Entry>>,
}

/// Where one replica listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Entry {
    pub(super) http: SocketAddr,
    /// Where it says whether it is ready; one without is taken to be.
    pub(super) admin: Option<SocketAddr>,
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
    pub(super) fn replicas(&self, service: &str) -> &[Entry] {
        self.services.get(service).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_for_other_readers_are_ignored() {
        let file: EndpointsFile = serde_json::from_str(
            r#"{"version":3,"services":{"post":[],"user":[{"http":"127.0.0.1:1","admin":"127.0.0.1:2","zone":"a"},{"http":"127.0.0.1:3"}]}}"#,
        )
        .expect("the file is good");
        let address = |text: &str| text.parse().expect("is an address");
        let expected = [("127.0.0.1:1", Some("127.0.0.1:2")), ("127.0.0.1:3", None)].map(|(http, admin)| Entry {
            http: address(http),
            admin: admin.map(address),
        });
        assert_eq!(file.replicas("user"), expected);
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
