//! A load of tours, as a user would put it on a stack with `rowlock load`.

use std::process::Output;

use serde_json::Value;

use crate::rowlock::{Folder, Running, start};

/// The shipped tour, POSTed under a key of its own each time.
pub(crate) struct ToursLoad {
    url: String,
    /// The header with the token.
    pub(crate) authorization: String,
    folder: Folder,
}

impl ToursLoad {
    /// Against a stack's front.
    pub(crate) fn new(front: &str, token: &str) -> Self {
        let folder = Folder::new("tours");
        std::fs::write(folder.path().join(BODY), tour()).unwrap();
        Self {
            url: format!("{front}/api/v1/tours"),
            authorization: format!("authorization: Bearer {token}"),
            folder,
        }
    }

    /// Starts it with these arguments more; the summary is printed as JSON.
    pub(crate) fn start(&self, more: &[&str]) -> Running {
        let body = self.folder.path().join(BODY);
        let arguments = [
            "load",
            &self.url,
            "--method",
            "POST",
            "--json",
            "--body",
            body.to_str().unwrap(),
            "--header",
            &self.authorization,
            "--header",
            "content-type: application/json",
            "--header",
            "idempotency-key: {{uuid}}",
        ];
        start(&[&arguments, more].concat())
    }
}

const BODY: &str = "tour.json";

fn tour() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../payloads/create-tour.json");
    let mut tour: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    tour["tourNumber"] = "IT-{{sequence}}".into();
    tour.to_string()
}

/// Id and secret of the client whose request `up` prints to be pasted.
pub(crate) fn credentials(up: &Output) -> (String, String) {
    let printed = String::from_utf8_lossy(&up.stdout);
    let credentials = printed
        .split_once("curl -s -u ")
        .and_then(|(_, rest)| rest.split_once(' '));
    let (id, secret) = credentials
        .and_then(|(pair, _)| pair.split_once(':'))
        .expect("`up` prints a request to paste");
    (id.to_owned(), secret.to_owned())
}

/// A token as a user would get one.
pub(crate) fn token(up: &Output, front: &str) -> String {
    let (id, secret) = credentials(up);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let form = [("grant_type", "client_credentials")];
        let request = reqwest::Client::new().post(format!("{front}/oauth2/token"));
        let answer = request.basic_auth(id, Some(secret)).form(&form).send().await.unwrap();
        let granted: Value = answer.error_for_status().unwrap().json().await.unwrap();
        granted["access_token"].as_str().unwrap().to_owned()
    })
}
