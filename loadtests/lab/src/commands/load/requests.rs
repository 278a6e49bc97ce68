//! What is sent: one request from the command line, or a mix of several from a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::{Method, StatusCode};
use load::{HttpTarget, Mix, Url};
use serde::Deserialize;

use crate::failure::{Failure, Outcome};

/// Arguments that say what is sent.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to; only addresses of this machine
    #[arg(required_unless_present = "mix")]
    url: Option<Url>,
    /// File with several requests instead: TOML with an array of tables `request`, each with url, and where they differ from
    /// a plain GET with weight, method, headers, body or body_file, status
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "method", "body", "headers"])]
    mix: Option<PathBuf>,
    /// Method of the request
    #[arg(long, default_value = "GET")]
    method: Method,
    /// File with the body; {{uuid}} and {{sequence}} differ in each request
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// Header, e.g. "authorization: Bearer …" (repeatable); {{uuid}} and {{sequence}} differ in each request
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
}

/// One kind of request.
#[derive(Debug)]
struct Request {
    weight: u32,
    method: Method,
    url: Url,
    headers: Vec<(String, String)>,
    body: String,
    /// Any 2xx when absent.
    status: Option<StatusCode>,
}

impl Args {
    /// The target that draws among all requests.
    pub(super) fn mix(self, seed: u64) -> Outcome<Mix> {
        mix(&self.read()?, seed)
    }

    fn read(self) -> Outcome<Vec<Request>> {
        if let Some(path) = self.mix {
            return parse(&read(&path)?, path.parent().unwrap_or(Path::new("")))
                .map_err(|reason| Failure::Usage(format!("{}: {reason}", path.display())));
        }
        let url = self
            .url
            .ok_or_else(|| Failure::Usage("a load needs a URL or --mix".to_owned()))?;
        Ok(vec![Request {
            weight: 1,
            method: self.method,
            url,
            headers: self.headers,
            body: self.body.as_deref().map(read).transpose()?.unwrap_or_default(),
            status: None,
        }])
    }
}

fn mix(requests: &[Request], seed: u64) -> Outcome<Mix> {
    let wrong = |error: load::LoadError| Failure::Usage(error.to_string());
    let mut parts = Vec::with_capacity(requests.len());
    for request in requests {
        let mut builder = HttpTarget::builder(request.method.clone(), request.url.clone()).body(request.body.clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        if let Some(status) = request.status {
            builder = builder.expect_status(status);
        }
        parts.push((request.weight, builder.build().map_err(wrong)?));
    }
    Mix::new(parts, seed).map_err(wrong)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    request: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_file: Option<PathBuf>,
    status: Option<u16>,
}

fn one() -> u32 {
    1
}

fn get() -> String {
    "GET".to_owned()
}

fn parse(text: &str, folder: &Path) -> Result<Vec<Request>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.request.into_iter().map(|written| written.check(folder)).collect()
}

impl Written {
    fn check(self, folder: &Path) -> Result<Request, String> {
        let body = match (self.body, self.body_file) {
            (Some(_), Some(_)) => return Err(format!("{} has both body and body_file", self.url)),
            (body, None) => body.unwrap_or_default(),
            (None, Some(path)) => read(&folder.join(path)).map_err(|failure| failure.to_string())?,
        };
        let status = self.status.map(StatusCode::from_u16).transpose();
        Ok(Request {
            weight: self.weight,
            method: Method::from_bytes(self.method.as_bytes())
                .map_err(|_| format!("`{}` is no method", self.method))?,
            url: self.url.parse().map_err(|error: load::LoadError| error.to_string())?,
            headers: self.headers.into_iter().collect(),
            body,
            status: status.map_err(|_| "a status is a number from 100 to 999".to_owned())?,
        })
    }
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(format!("`{text}` is not of the form NAME: VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_read_with_its_weights_and_a_misspelt_key_is_an_error() {
        let text = "
            [[request]]
            url = 'http://127.0.0.1:9/tenants'
            weight = 9

            [[request]]
            url = 'http://127.0.0.1:9/tours'
            method = 'POST'
            headers = { idempotency-key = '{{uuid}}' }
            body = '{}'
            status = 201
        ";
        let requests = parse(text, Path::new("")).unwrap();
        let weights: Vec<_> = requests
            .iter()
            .map(|request| (request.weight, request.method.clone()))
            .collect();
        assert_eq!(weights, [(9, Method::GET), (1, Method::POST)]);
        assert!(mix(&requests, 1).is_ok());
        for (from, to, reason) in [
            ("weight", "wieght", "wieght"),
            ("body = '{}'", "body = '{}'\nbody_file = 'x'", "both body and body_file"),
            ("127.0.0.1:9/tours", "example.com/", "not a loopback address"),
            ("'POST'", "'P OST'", "is no method"),
        ] {
            let error = parse(&text.replace(from, to), Path::new("")).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
