//! What people may be called and how long a password has to be.

/// Longer names are refused before anything is done with them.
const MAX_USERNAME: usize = 64;
const MIN_USERNAME: usize = 3;
const MAX_EMAIL: usize = 254;
/// NIST SP 800-63B, section 5.1.1.2: at least eight characters, and no rules about which.
const MIN_PASSWORD: usize = 8;
const MAX_PASSWORD: usize = 256;

/// A user name as it is stored, that is, in lower case; or why it is none.
pub(crate) fn username(text: &str) -> Result<String, String> {
    let fits = (MIN_USERNAME..=MAX_USERNAME).contains(&text.len());
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if fits && text.bytes().all(good) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(format!(
            "must be {MIN_USERNAME} to {MAX_USERNAME} letters, digits, dots, underscores or hyphens"
        ))
    }
}

/// Checks a password that is to be set. The reason never holds it.
pub(crate) fn password(text: &str, username: &str) -> Result<(), String> {
    if text.chars().count() < MIN_PASSWORD || text.len() > MAX_PASSWORD {
        return Err(format!(
            "must have at least {MIN_PASSWORD} characters and at most {MAX_PASSWORD} bytes"
        ));
    }
    if text.eq_ignore_ascii_case(username) {
        return Err("must not be the user name".to_owned());
    }
    Ok(())
}

/// An address that could be one, in lower case: whether it is one, only a mail to it can tell.
pub(crate) fn email(text: &str) -> Result<String, String> {
    let parts = text.split_once('@').filter(|(name, host)| {
        let host_ok = host.contains('.') && !host.starts_with('.') && !host.ends_with('.') && !host.contains('@');
        !name.is_empty() && host_ok
    });
    let visible = text.len() <= MAX_EMAIL && text.bytes().all(|byte| byte.is_ascii_graphic());
    match parts {
        Some(_) if visible => Ok(text.to_ascii_lowercase()),
        _ => Err("must be a mail address such as ada@example.org".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_in_lower_case_and_odd_ones_refused() {
        assert_eq!(username("Ada.Lovelace-1"), Ok("ada.lovelace-1".to_owned()));
        for bad in ["ab", "", "a b c", "ädä", "a\0bc", &"x".repeat(65)] {
            assert!(username(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn addresses_without_name_host_or_with_blanks_are_refused() {
        assert_eq!(email("Ada@Example.org"), Ok("ada@example.org".to_owned()));
        for bad in [
            "ada",
            "@example.org",
            "ada@",
            "ada@host",
            "a@b@c.de",
            "a b@c.de",
            "a\0@c.de",
        ] {
            assert!(email(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_password_is_measured_in_characters() {
        assert!(password("pässwörd", "ada").is_ok());
        assert!(password("pässwör", "ada").is_err());
        assert!(password(&"x".repeat(257), "ada").is_err());
        assert!(password("ADALOVELACE", "adalovelace").is_err());
    }
}
