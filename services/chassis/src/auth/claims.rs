//! What a token says about its bearer.

use serde_json::{Map, Value};

use super::AuthError;

/// The claims of a checked access token (RFC 9068), under whatever names the issuer gives them.
#[derive(Clone, Debug)]
pub struct Claims {
    /// Subject; for a client acting for itself the same as `client_id`.
    pub sub: String,
    /// The client the token was issued to.
    pub client_id: String,
    /// Key of the tenant the bearer belongs to, if it belongs to one.
    pub tenant: Option<String>,
    /// Granted scopes.
    pub scopes: Vec<String>,
    /// Expiry, in seconds since 1970.
    pub exp: i64,
}

const MALFORMED: AuthError = AuthError::InvalidToken("the token lacks a claim or holds a malformed one");

impl Claims {
    /// Reads the members of a token or of an introspection answer.
    ///
    /// Issuers differ: the client is `client_id` or `azp`, scopes are a string or a list under `scope` or `scp`, and an
    /// answer about a client's own token may have no `sub`.
    pub(super) fn read(members: &Map<String, Value>, tenant_claim: &str) -> Result<Self, AuthError> {
        let client_id = text(members, "client_id")?.or(text(members, "azp")?).ok_or(MALFORMED)?;
        Ok(Self {
            sub: text(members, "sub")?.unwrap_or_else(|| client_id.clone()),
            client_id,
            tenant: text(members, tenant_claim)?,
            scopes: scopes(members.get("scope").or_else(|| members.get("scp")))?,
            exp: members.get("exp").and_then(seconds).ok_or(MALFORMED)?,
        })
    }
}

/// A claim that may be missing, and is a text otherwise.
fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, AuthError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(MALFORMED),
    }
}

fn scopes(claim: Option<&Value>) -> Result<Vec<String>, AuthError> {
    match claim {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text
            .split(' ')
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|scope| scope.as_str().map(str::to_owned).ok_or(MALFORMED))
            .collect(),
        Some(_) => Err(MALFORMED),
    }
}

/// A NumericDate (RFC 7519, section 2), which may have a fraction.
fn seconds(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(claims: &Value) -> Result<Claims, AuthError> {
        Claims::read(claims.as_object().expect("an object"), "organisation")
    }

    #[test]
    fn what_issuers_name_differently_is_found() {
        let ours = read(&json!({"sub": "u", "client_id": "c", "scope": "a  b", "organisation": "BEHNGT", "exp": 7}));
        let theirs = read(&json!({"azp": "c", "scp": ["a", "b"], "organisation": null, "exp": 7.9}));
        let (ours, theirs) = (ours.expect("good"), theirs.expect("good"));
        assert_eq!((ours.sub.as_str(), ours.tenant.as_deref()), ("u", Some("BEHNGT")));
        assert_eq!((theirs.sub.as_str(), theirs.tenant.as_deref()), ("c", None));
        for claims in [ours, theirs] {
            assert_eq!((claims.client_id.as_str(), claims.exp), ("c", 7));
            assert_eq!(claims.scopes, ["a", "b"]);
        }
    }

    #[test]
    fn a_claim_of_another_kind_is_no_claim() {
        let good = json!({"sub": "u", "client_id": "c", "scope": "a", "organisation": "T", "exp": 7});
        assert!(read(&good).is_ok());
        for (name, value) in [
            ("client_id", json!(null)),
            ("client_id", json!("")),
            ("sub", json!(1)),
            ("scope", json!(1)),
            ("scope", json!(["a", 1])),
            ("organisation", json!(["T", "U"])),
            ("exp", json!("7")),
            ("exp", json!(null)),
        ] {
            let mut bad = good.clone();
            bad[name] = value.clone();
            assert_eq!(read(&bad).err(), Some(MALFORMED), "{name} = {value}");
        }
    }
}
