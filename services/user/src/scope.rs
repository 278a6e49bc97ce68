//! Scope sets (RFC 6749, section 3.3).

/// Scopes that cannot be granted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScopeError {
    #[error("the scope parameter must be scope tokens separated by single spaces")]
    Malformed,
    #[error("the scope {0} may not be had")]
    NotAllowed(String),
    #[error("no scope at all may be had")]
    Nothing,
}

/// Whether `token` is printable ASCII without space, quote and backslash, as the grammar asks.
pub(crate) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// Splits a `scope` parameter, without duplicates and in the order of first mention.
pub(crate) fn parse(parameter: &str) -> Result<Vec<&str>, ScopeError> {
    let mut tokens = Vec::new();
    for token in parameter.split(' ') {
        if !is_token(token) {
            return Err(ScopeError::Malformed);
        }
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    Ok(tokens)
}

/// What was asked for, if all of it is allowed; everything that is allowed if nothing was asked for.
pub(crate) fn narrow(allowed: &[String], requested: Option<&str>) -> Result<String, ScopeError> {
    let Some(requested) = requested else {
        return if allowed.is_empty() {
            Err(ScopeError::Nothing)
        } else {
            Ok(allowed.join(" "))
        };
    };
    let requested = parse(requested)?;
    match requested
        .iter()
        .find(|token| !allowed.iter().any(|scope| scope == *token))
    {
        Some(token) => Err(ScopeError::NotAllowed((*token).to_owned())),
        None => Ok(requested.join(" ")),
    }
}

/// What both lists hold, in the order of the first.
pub(crate) fn common(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().filter(|scope| other.contains(scope)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<String> {
        vec!["tours:read".to_owned(), "tours:write".to_owned()]
    }

    #[test]
    fn without_a_request_everything_allowed_is_granted() {
        assert_eq!(narrow(&allowed(), None), Ok("tours:read tours:write".to_owned()));
    }

    #[test]
    fn a_request_narrows_and_cannot_widen() {
        assert_eq!(narrow(&allowed(), Some("tours:write")), Ok("tours:write".to_owned()));
        for requested in ["admin", "tours:read admin", "tours:read  tours:write"] {
            assert!(narrow(&allowed(), Some(requested)).is_err(), "{requested}");
        }
        assert_eq!(narrow(&[], None), Err(ScopeError::Nothing));
    }

    #[test]
    fn tokens_keep_their_order_and_lose_duplicates() {
        assert_eq!(
            parse("tours:write tours:read tours:write"),
            Ok(vec!["tours:write", "tours:read"])
        );
    }

    #[test]
    fn quotes_backslashes_and_double_spaces_are_refused() {
        for bad in ["a  b", " a", "a\"b", "a\\b", "ä", "a\tb", ""] {
            assert_eq!(parse(bad), Err(ScopeError::Malformed), "{bad:?}");
        }
    }
}
