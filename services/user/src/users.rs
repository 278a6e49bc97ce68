//! The users file: accounts that exist from the start, with a tenant that nobody can give himself by registering.

use chassis::service::StartError;
use serde::Deserialize;

use crate::{names, scope};

/// One entry of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UserEntry {
    pub(crate) username: String,
    pub(crate) password: String,
    /// Tenant key that goes into the tokens; absent for a user who acts for no tenant.
    pub(crate) tenant: Option<String>,
    pub(crate) scopes: Vec<String>,
}

/// Reads the whole file, or says which entry is wrong. Passwords never reach the message.
pub(crate) fn read(path: &str) -> Result<Vec<UserEntry>, StartError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        StartError::Config(format!(
            "USER_USERS_FILE: cannot read {path}: {error}; write the file or leave the variable out"
        ))
    })?;
    parse(&text).map_err(|problem| StartError::Config(format!("USER_USERS_FILE: {path}: {problem}")))
}

fn parse(text: &str) -> Result<Vec<UserEntry>, String> {
    // Syntax and type errors of serde_json quote the offending value, which may be a password: say only where.
    let mut users: Vec<UserEntry> = serde_json::from_str(text).map_err(|error| {
        format!(
            "line {}, column {} does not fit [{{\"username\",\"password\",\"tenant\",\"scopes\":[…]}}]",
            error.line(),
            error.column()
        )
    })?;
    for index in 0..users.len() {
        let (earlier, rest) = users.split_at_mut(index);
        let user = &mut rest[0];
        check(user).map_err(|problem| format!("user {index} ({:?}): {problem}", user.username))?;
        if earlier.iter().any(|other| other.username == user.username) {
            return Err(format!("username {:?} occurs twice", user.username));
        }
    }
    Ok(users)
}

fn check(user: &mut UserEntry) -> Result<(), String> {
    user.username = names::username(&user.username).map_err(|reason| format!("username {reason}"))?;
    names::password(&user.password, &user.username).map_err(|reason| format!("password {reason}"))?;
    if user.tenant.as_deref() == Some("") {
        return Err("tenant must not be empty; leave it out for a user without tenant".to_owned());
    }
    match user.scopes.iter().find(|scope| !scope::is_token(scope)) {
        Some(scope) => Err(format!("{scope:?} is no scope token")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_lower_case() {
        let users = parse(r#"[{"username":"Ada","password":"correct horse","tenant":"BEHNGT","scopes":["a"]}]"#);
        let users = users.expect("the file is good");
        assert_eq!(
            (users[0].username.as_str(), users[0].tenant.as_deref()),
            ("ada", Some("BEHNGT"))
        );
    }

    #[test]
    fn a_wrong_entry_is_named_and_its_password_is_not_shown() {
        for (text, says) in [
            (
                r#"[{"username":"ada","password":"hunter2","scopes":[]}]"#,
                "user 0 (\"ada\"): password",
            ),
            (r#"[{"username":"ada","password":["hunter2"],"scopes":[]}]"#, "line 1"),
            (
                r#"[{"username":"a","password":"hunter2hunter2","scopes":[]}]"#,
                "username",
            ),
        ] {
            let message = parse(text).map(|_| ()).expect_err("refused");
            assert!(message.contains(says) && !message.contains("hunter2"), "{message}");
        }
        let entry = r#"{"username":"ada","password":"correct horse","scopes":[]}"#;
        let twice = format!("[{entry},{}]", entry.replace("ada", "ADA"));
        assert!(parse(&twice).map(|_| ()).expect_err("refused").contains("twice"));
    }
}
