//! Kinds of configuration value that a plain string cannot tell apart: what is secret, what differs by machine, what
//! is a length of time.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::{Serialize, Serializer};

const REDACTED: &str = "[redacted]";

/// A value nobody may read back: shown as `[redacted]` in logs, in `/config` and in error messages.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The value itself; the name makes every use of it easy to find.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("a secret must not be empty".to_owned());
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// A URL or path that differs from machine to machine and says nothing about how a service behaves: it is left out of
/// the configuration digest, and its credentials are hidden wherever it is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// The address as given, credentials included.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address without user, password and query (drivers accept passwords there, too).
    fn redacted(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return self.0.clone();
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, _)) => (rest, "?[redacted]"),
            None => (rest, ""),
        };
        // The last `@`: a password may hold an unescaped one, or a `/`.
        match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://{REDACTED}@{host}{query}"),
            None => format!("{scheme}://{rest}{query}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("an address must not be empty".to_owned());
        }
        if text.contains(|c: char| c.is_control()) {
            return Err("an address must not hold control characters".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

/// A length of time written as `500ms`, `2s`, `10m` or `1m30s`; units are `us`, `ms`, `s`, `m` and `h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

impl Deref for HumanDuration {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || format!("{text:?} is not a duration such as 500ms, 2s, 10m or 1m30s");
        let mut rest = text;
        let mut total = Duration::ZERO;
        loop {
            let (number, after) = split_at_char(rest, |c| !c.is_ascii_digit());
            let (unit, after) = split_at_char(after, |c| c.is_ascii_digit());
            let number: u64 = number.parse().map_err(|_| malformed())?;
            let micros = match unit {
                "us" => 1,
                "ms" => 1_000,
                "s" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000_u64,
                _ => return Err(malformed()),
            };
            let part = number
                .checked_mul(micros)
                .map(Duration::from_micros)
                .ok_or_else(malformed)?;
            total = total.checked_add(part).ok_or_else(malformed)?;
            rest = after;
            if rest.is_empty() {
                return Ok(Self(total));
            }
        }
    }
}

fn split_at_char(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_micros() {
            micros if micros % 1_000_000 == 0 => write!(f, "{}s", micros / 1_000_000),
            micros if micros % 1_000 == 0 => write!(f, "{}ms", micros / 1_000),
            micros => write!(f, "{micros}us"),
        }
    }
}

impl fmt::Debug for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown_in_the_same_words() {
        for (text, micros, shown) in [
            ("500ms", 500_000, "500ms"),
            ("2s", 2_000_000, "2s"),
            ("0s", 0, "0s"),
            ("10m", 600_000_000, "600s"),
            ("1m30s", 90_000_000, "90s"),
            ("1h", 3_600_000_000, "3600s"),
            ("1s5us", 1_000_005, "1000005us"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!(duration.as_micros(), micros, "{text}");
            assert_eq!(duration.to_string(), shown);
            assert_eq!(shown.parse(), Ok(duration));
        }
    }

    #[test]
    fn a_duration_without_number_or_unit_is_refused() {
        for text in [
            "",
            "5",
            "ms",
            "5 s",
            "-1s",
            "1.5s",
            "5sec",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        for (address, shown) in [
            (
                "postgres://me:p@ss/word@127.0.0.1:5432/db",
                "postgres://[redacted]@127.0.0.1:5432/db",
            ),
            (
                "postgres://127.0.0.1/db?user=me&password=x",
                "postgres://127.0.0.1/db?[redacted]",
            ),
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("/run/endpoints.json", "/run/endpoints.json"),
        ] {
            let parsed: Address = address.parse().unwrap();
            assert_eq!(format!("{parsed:?}"), shown);
            assert_eq!(serde_json::to_value(&parsed).unwrap(), shown);
            assert_eq!(parsed.as_str(), address);
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret: Secret = "hunter2".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(serde_json::to_value(&secret).unwrap(), "[redacted]");
        assert_eq!(secret.expose(), "hunter2");
        assert!("".parse::<Secret>().is_err());
    }
}
