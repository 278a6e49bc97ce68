//! Scope sets (RFC 6749, section 3.3).

/// A scope parameter that is no list of scope tokens.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scope parameter must be scope tokens separated by single spaces")]
pub(crate) struct MalformedScope;

/// Whether `token` is printable ASCII without space, quote and backslash, as the grammar asks.
pub(crate) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// Splits a `scope` parameter, without duplicates and in the order of first mention.
pub(crate) fn parse(parameter: &str) -> Result<Vec<&str>, MalformedScope> {
    let mut tokens = Vec::new();
    for token in parameter.split(' ') {
        if !is_token(token) {
            return Err(MalformedScope);
        }
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse(bad), Err(MalformedScope), "{bad:?}");
        }
    }
}
