//! The search for secrets where they may not be: in what a service prints, exports, shows and answers.

use reqwest::RequestBuilder;

use crate::{Collector, Process};

/// Texts that may be shown nowhere, and those that were.
#[derive(Debug, Default)]
pub struct Search {
    secrets: Vec<(&'static str, String)>,
    shown: Vec<(String, String)>,
}

impl Search {
    /// A secret; of a token its last part, which is what makes it one.
    ///
    /// # Panics
    /// It is so short that it would be found by chance.
    pub fn secret(&mut self, what: &'static str, value: &str) {
        assert!(value.len() >= 8, "{what} is too short to be searched for");
        let end = value.len().saturating_sub(40);
        self.secrets.push((what, value[end..].to_owned()));
    }

    /// The password in a server's URL, when there is one.
    pub fn password_of(&mut self, what: &'static str, url: &str) {
        if let Some((_, password)) = url.rsplit_once('@').and_then(|(before, _)| before.rsplit_once(':'))
            && !password.starts_with("//")
        {
            self.secret(what, password);
        }
    }

    /// Something that was shown.
    pub fn shown(&mut self, place: &str, text: String) {
        self.shown.push((place.to_owned(), text));
    }

    /// Sends a request that is to be refused and keeps the answer.
    ///
    /// # Panics
    /// It is not refused.
    pub async fn refused(&mut self, what: &str, request: RequestBuilder) {
        let response = request.send().await.expect("answers");
        let status = response.status();
        assert!(!status.is_success(), "{what}: {status}");
        let headers = format!("{:?}", response.headers());
        let text = headers + &response.text().await.expect("is text");
        self.shown(what, text);
    }

    /// Looks at the pages of the admin port, stops the process, and keeps all that it printed and exported.
    ///
    /// # Panics
    /// It does not stop in peace.
    pub async fn end(&mut self, http: &reqwest::Client, process: Process, collector: &Collector) {
        for path in ["/config", "/metrics", "/readyz"] {
            let page = http.get(format!("http://{}{path}", process.admin));
            let page = page.send().await.expect("answers");
            self.shown(path, page.text().await.expect("is text"));
        }
        process.terminate();
        let finished = tokio::task::spawn_blocking(|| process.finished()).await.expect("stops");
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        self.shown("the log", finished.stdout);
        self.shown("stderr", finished.stderr);
        self.shown("the telemetry", collector.text());
    }

    /// What is searched is really there: `place` shows `text`.
    ///
    /// # Panics
    /// It does not.
    pub fn expect(&self, place: &str, text: &str) {
        let found = self
            .shown
            .iter()
            .any(|(name, shown)| name == place && shown.contains(text));
        assert!(found, "{place} does not show `{text}`: there is nothing to search");
    }

    /// No secret is shown anywhere.
    ///
    /// # Panics
    /// One is; where and in which line is said.
    pub fn assert_hidden(&self) {
        for (place, text) in &self.shown {
            for (what, secret) in &self.secrets {
                let line = text.lines().find(|line| line.contains(secret.as_str()));
                assert!(line.is_none(), "the {what} is in {place}: {line:?}");
            }
        }
    }
}
