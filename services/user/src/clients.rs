//! The clients file: who may ask for tokens.

use chassis::service::StartError;
use serde::Deserialize;

use crate::handlers::grant;
use crate::{scope, sessions};

/// 128 bits in base64. Secrets are hashed without stretching, which is only right for random ones.
const MIN_SECRET_LEN: usize = 22;

/// One entry of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientEntry {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    /// Tenant key that goes into the tokens; absent for a client that acts for no tenant.
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// Grant types the client may use.
    #[serde(default = "client_credentials")]
    pub(crate) grants: Vec<String>,
    /// Whether the client may ask about tokens, as a service that takes them does.
    #[serde(default)]
    pub(crate) introspect: bool,
}

fn client_credentials() -> Vec<String> {
    vec![grant::CLIENT_CREDENTIALS.to_owned()]
}

/// Reads the whole file, or says which entry is wrong. Secrets never reach the message.
pub(crate) fn read(path: &str) -> Result<Vec<ClientEntry>, StartError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        StartError::Config(format!(
            "USER_CLIENTS_FILE: cannot read {path}: {error}; write the file or leave the variable out"
        ))
    })?;
    parse(&text).map_err(|problem| StartError::Config(format!("USER_CLIENTS_FILE: {path}: {problem}")))
}

fn parse(text: &str) -> Result<Vec<ClientEntry>, String> {
    // Syntax and type errors of serde_json quote the offending value, which may be a secret: say only where.
    let clients: Vec<ClientEntry> = serde_json::from_str(text).map_err(|error| {
        format!(
            "line {}, column {} does not fit \
             [{{\"client_id\",\"client_secret\",\"tenant\",\"scopes\":[…],\"grants\":[…],\"introspect\"}}]",
            error.line(),
            error.column()
        )
    })?;
    for (index, client) in clients.iter().enumerate() {
        check(client).map_err(|problem| format!("client {index} ({:?}): {problem}", client.client_id))?;
        if clients[..index]
            .iter()
            .any(|earlier| earlier.client_id == client.client_id)
        {
            return Err(format!("client_id {:?} occurs twice", client.client_id));
        }
    }
    Ok(clients)
}

fn check(client: &ClientEntry) -> Result<(), String> {
    let visible = |text: &str| !text.is_empty() && text.bytes().all(|b| (0x20..=0x7e).contains(&b));
    if !visible(&client.client_id) {
        return Err("client_id must be printable ASCII".to_owned());
    }
    if !visible(&client.client_secret) || client.client_secret.len() < MIN_SECRET_LEN {
        return Err(format!(
            "client_secret must be at least {MIN_SECRET_LEN} printable ASCII characters, generated at random"
        ));
    }
    if client.tenant.as_deref() == Some("") {
        return Err("tenant must not be empty; leave it out for a client without tenant".to_owned());
    }
    if client.client_id == sessions::OWN_CLIENT {
        return Err("this name belongs to the service's own /api/auth endpoints".to_owned());
    }
    if let Some(unknown) = client.grants.iter().find(|name| !grant::ALL.contains(&name.as_str())) {
        return Err(format!("{unknown:?} is no grant; known are {}", grant::ALL.join(", ")));
    }
    match client.scopes.iter().find(|scope| !scope::is_token(scope)) {
        Some(scope) => Err(format!("{scope:?} is no scope token")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).map(|_| ()).expect_err("the file is refused")
    }

    #[test]
    fn a_good_file_is_read_whole() {
        let clients = parse(
            r#"[{"client_id":"a","client_secret":"0123456789abcdef012345","tenant":"BEHNGT","scopes":["tours:read"]},
                {"client_id":"b","client_secret":"0123456789abcdef012345","scopes":[]}]"#,
        )
        .expect("the file is good");
        assert_eq!(clients.len(), 2);
        assert_eq!(clients[0].tenant.as_deref(), Some("BEHNGT"));
        assert_eq!(clients[1].tenant, None);
        assert_eq!(
            (clients[1].grants.join(" ").as_str(), clients[1].introspect),
            ("client_credentials", false)
        );
    }

    #[test]
    fn a_wrong_entry_is_named_and_its_secret_is_not_shown() {
        let short = refused(r#"[{"client_id":"a","client_secret":"hunter2","scopes":[]}]"#);
        assert!(short.contains("client 0 (\"a\")") && short.contains("22"), "{short}");
        assert!(!short.contains("hunter2"), "{short}");

        let typed = refused(r#"[{"client_id":"a","client_secret":"s3cr3t","scopes":"hunter2"}]"#);
        assert!(typed.contains("line 1"), "{typed}");
        assert!(!typed.contains("hunter2"), "{typed}");
    }

    #[test]
    fn a_client_must_not_occur_twice() {
        let entry = r#"{"client_id":"a","client_secret":"0123456789abcdef012345","scopes":[]}"#;
        assert!(refused(&format!("[{entry},{entry}]")).contains("twice"));
    }

    #[test]
    fn an_unknown_grant_and_a_name_of_ours_are_refused() {
        let grant = r#"[{"client_id":"a","client_secret":"0123456789abcdef012345","scopes":[],"grants":["implicit"]}]"#;
        let message = refused(grant);
        assert!(
            message.contains("implicit") && message.contains("refresh_token"),
            "{message}"
        );
        let ours = r#"[{"client_id":"rowlock-accounts","client_secret":"0123456789abcdef012345","scopes":[]}]"#;
        assert!(refused(ours).contains("/api/auth"));
    }

    #[test]
    fn a_scope_with_a_space_is_refused() {
        let text = r#"[{"client_id":"a","client_secret":"0123456789abcdef012345","scopes":["a b"]}]"#;
        assert!(refused(text).contains("\"a b\""));
    }
}
