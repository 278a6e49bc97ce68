//! The HTTP client for the stack, which is on this machine: a proxy that the environment names is not asked.

use std::time::Duration;

use anyhow::Context;

/// A client whose requests take no longer than `within`, answers included.
///
/// # Errors
/// TLS cannot be set up.
pub(crate) fn client(within: Duration) -> anyhow::Result<reqwest::Client> {
    let client = reqwest::Client::builder().no_proxy().timeout(within).build();
    client.context("no HTTP client")
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn who_does_not_answer_is_not_waited_for_without_end() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let failed = client(Duration::from_millis(50))
            .unwrap()
            .get(url)
            .send()
            .await
            .unwrap_err();
        assert!(failed.is_timeout(), "{failed:?}");
    }
}
