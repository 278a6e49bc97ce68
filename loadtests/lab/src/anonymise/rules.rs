//! Which fields are personal, and what is to become of them.

use serde::Deserialize;

/// The rules as shipped; their text explains itself.
pub(crate) const SHIPPED: &str = include_str!("rules.toml");

/// Fewest digits of something that looks like a phone.
const PHONE_DIGITS: usize = 7;

/// Rules in the order in which they are asked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    #[serde(rename = "rule")]
    rules: Vec<Rule>,
}

/// One rule; see `rules.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) name: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    values: Option<Looks>,
    pub(crate) replace: Replace,
    #[serde(default)]
    pub(crate) search: Search,
    #[serde(default = "yes")]
    below: bool,
}

/// What a value looks like by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Looks {
    Email,
    Phone,
}

/// What becomes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replace {
    Synthetic,
    Null,
    Keep,
}

/// Where an old value must not occur any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Search {
    /// As a whole value.
    Whole,
    /// As a whole value, and as a part of any text or field name.
    #[default]
    Anywhere,
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// What is wrong with the text, for the person who wrote it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rules: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for rule in &mut rules.rules {
            if rule.keys.is_empty() && rule.paths.is_empty() && rule.values.is_none() {
                return Err(format!(
                    "rule `{}` fits nothing: it needs keys, paths or values",
                    rule.name
                ));
            }
            if let Some(path) = rule.paths.iter().find(|path| !path.starts_with('/')) {
                return Err(format!("rule `{}`: the path `{path}` does not begin with /", rule.name));
            }
            for key in &mut rule.keys {
                *key = normal(key);
            }
        }
        Ok(rules)
    }

    /// The rule for a field by its place, the field itself or what it lies under being last in `path`.
    pub(crate) fn of_field(&self, path: &[String]) -> Option<&Rule> {
        let key = path
            .iter()
            .rev()
            .find(|segment| *segment != ELEMENT)
            .map(|key| normal(key));
        self.rules.iter().find(|rule| {
            rule.paths.iter().any(|pattern| lies_at(pattern, path))
                || key
                    .as_ref()
                    .is_some_and(|key| rule.keys.iter().any(|pattern| fits(pattern, key)))
        })
    }

    /// The rule for a text by what it looks like.
    pub(crate) fn of_value(&self, text: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| match rule.values {
            Some(Looks::Email) => is_email(text),
            Some(Looks::Phone) => is_phone(text),
            None => false,
        })
    }
}

impl Rule {
    /// The rule, for what lies under a field it fits.
    pub(crate) fn below(&self) -> Option<&Self> {
        self.below.then_some(self)
    }
}

fn yes() -> bool {
    true
}

/// Stands for any element of an array in a path.
pub(crate) const ELEMENT: &str = "*";

/// Field names are compared without case, `_` and `-`.
fn normal(key: &str) -> String {
    let kept = key.chars().filter(|c| !matches!(c, '_' | '-'));
    kept.flat_map(char::to_lowercase).collect()
}

/// A pattern with any number of `*`.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| fits(after, &rest[at..]))
        }),
    }
}

fn lies_at(pattern: &str, path: &[String]) -> bool {
    let mut wanted = pattern.split('/').skip(1).peekable();
    let mut there = path.iter();
    while let Some(segment) = wanted.next() {
        if segment == "**" && wanted.peek().is_none() {
            return true;
        }
        match there.next() {
            Some(name) if segment == ELEMENT || segment == name => {}
            _ => return false,
        }
    }
    there.next().is_none()
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| {
        !user.is_empty()
            && !text.contains(char::is_whitespace)
            && host.split_once('.').is_some_and(|(domain, ending)| {
                !domain.is_empty() && ending.chars().all(|c| c.is_alphanumeric() || c == '.')
            })
    })
}

/// International notation only: digits without a `+` are as likely an article number.
fn is_phone(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    text.starts_with('+')
        && digits >= PHONE_DIGITS
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '+' | ' ' | '-' | '/' | '(' | ')' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('/').skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn fields_are_found_by_name_however_it_is_written() {
        let rules = Rules::parse(SHIPPED).unwrap();
        for (place, rule) in [
            ("/stops/*/address/contactPerson", "names"),
            ("/driver/first_name", "names"),
            ("/Customer-Number", "customers, drivers and orders"),
            ("/stops/*/address/latitudeE6", "postal codes and positions"),
            ("/phones/*", ""),
            ("/homePhone", "phones"),
            ("/stops/*/address", "addresses"),
            ("/quantity", ""),
        ] {
            let found = rules.of_field(&path(place)).map_or("", |rule| rule.name.as_str());
            assert_eq!(found, rule, "{place}");
        }
    }

    #[test]
    fn values_are_found_by_what_they_look_like() {
        let rules = Rules::parse(SHIPPED).unwrap();
        let found = |text| rules.of_value(text).map_or("", |rule| rule.name.as_str());
        assert_eq!(found("a.b@example.org"), "mail addresses");
        assert_eq!(found("+49 (441) 123-4567"), "phones");
        for other in [
            "4711-0815",
            "a@b",
            "see a.b@example.org for more",
            "+12",
            "@example.org",
        ] {
            assert_eq!(found(other), "", "{other}");
        }
    }

    #[test]
    fn a_path_may_leave_open_single_steps_and_its_end() {
        assert!(lies_at("/a/*/c", &path("/a/b/c")));
        assert!(lies_at("/a/**", &path("/a/b/c")));
        assert!(!lies_at("/a/*", &path("/a/b/c")));
        assert!(!lies_at("/a/b/c", &path("/a/b")));
    }

    #[test]
    fn a_rule_that_can_fit_nothing_is_refused_by_name() {
        let error = Rules::parse("[[rule]]\nname = \"x\"\nreplace = \"null\"\n").unwrap_err();
        assert!(error.contains("`x`"), "{error}");
        let error = Rules::parse("[[rule]]\nname = \"x\"\npaths = [\"a\"]\nreplace = \"nul\"\n").unwrap_err();
        assert!(error.contains("nul") && error.contains("synthetic"), "{error}");
    }
}
