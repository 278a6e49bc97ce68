//! Request texts with unique fields, split once so that a request costs a copy and no parsing.

use uuid::Uuid;

/// What makes a request different from all others.
pub(super) struct Unique {
    pub(super) uuid: Uuid,
    pub(super) sequence: u64,
}

impl Unique {
    /// The UUID is nil unless `seen`: making one nobody sees costs a percent of a small request.
    pub(super) fn new(sequence: u64, seen: bool) -> Self {
        // Not `Uuid::new_v4`, which asks the kernel for random bytes each time.
        let random = || uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        Self {
            uuid: if seen { random() } else { Uuid::nil() },
            sequence,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(Vec<u8>),
    Uuid,
    Sequence,
}

/// A text with fields in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Splits a text at its `{{fields}}`; the error says which field is unknown.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (field, after) = after.split_once("}}").ok_or("a `{{` has no `}}`")?;
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            parts.push(match field.trim() {
                "uuid" => Part::Uuid,
                "sequence" => Part::Sequence,
                other => {
                    return Err(format!(
                        "`{{{{{other}}}}}` is no field; there are {{{{uuid}}}} and {{{{sequence}}}}"
                    ));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self { parts })
    }

    /// True when every rendering is the same.
    pub(super) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A text in which nothing is a field.
    pub(super) fn text(text: &str) -> Self {
        let mut template = Self::default();
        template.push_text(text.as_bytes());
        template
    }

    /// Goes on with such a text.
    pub(super) fn push_text(&mut self, text: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.extend_from_slice(text),
            _ => self.parts.push(Part::Text(text.into())),
        }
    }

    /// Goes on with another template.
    pub(super) fn push(&mut self, other: Self) {
        for part in other.parts {
            match part {
                Part::Text(text) => self.push_text(&text),
                field => self.parts.push(field),
            }
        }
    }

    /// Length of the text with its fields filled in, in bytes.
    pub(super) fn length(&self, unique: &Unique) -> usize {
        let lengths = self.parts.iter().map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Uuid => uuid::fmt::Hyphenated::LENGTH,
            Part::Sequence => decimal(unique.sequence, &mut [0; DIGITS]).len(),
        });
        lengths.sum()
    }

    /// Adds the text with its fields filled in to `out`.
    pub(super) fn render(&self, unique: &Unique, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Uuid => {
                    let mut buffer = Uuid::encode_buffer();
                    out.extend_from_slice(unique.uuid.hyphenated().encode_lower(&mut buffer).as_bytes());
                }
                Part::Sequence => out.extend_from_slice(decimal(unique.sequence, &mut [0; DIGITS])),
            }
        }
    }
}

/// The most digits of a number.
pub(super) const DIGITS: usize = 20;

/// A number in decimal digits.
pub(super) fn decimal(mut number: u64, digits: &mut [u8; DIGITS]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    &digits[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, unique: &Unique) -> String {
        let (template, mut out) = (Template::parse(text).unwrap(), Vec::new());
        template.render(unique, &mut out);
        assert_eq!(template.length(unique), out.len());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_filled_in_and_the_same_within_a_request() {
        let unique = Unique::new(1_234_567_890, true);
        let uuid = unique.uuid;
        assert_eq!(
            rendered(r#"{"a":"{{uuid}}","b":{{sequence}}}"#, &unique),
            format!(r#"{{"a":"{uuid}","b":1234567890}}"#)
        );
        assert_eq!(rendered("{{uuid}} {{ uuid }}", &unique), format!("{uuid} {uuid}"));
        assert_eq!(rendered("{{sequence}}", &Unique::new(0, true)), "0");
        assert_eq!(
            rendered("{{sequence}}", &Unique::new(u64::MAX, true)),
            u64::MAX.to_string()
        );
        assert_eq!(uuid.get_version_num(), 4);
        assert_ne!(uuid, Unique::new(1, true).uuid);
    }

    #[test]
    fn a_text_without_fields_is_fixed_and_stays_as_it_is() {
        let template = Template::parse(r#"{"a":{"b":1}}"#).unwrap();
        assert!(template.is_fixed());
        assert_eq!(rendered(r#"{"a":{"b":1}}"#, &Unique::new(1, true)), r#"{"a":{"b":1}}"#);
        assert!(!Template::parse("{{uuid}}").unwrap().is_fixed());
    }

    #[test]
    fn templates_are_put_together_and_what_is_added_as_text_has_no_fields() {
        let mut template = Template::parse("{{sequence}}").unwrap();
        template.push_text(b" {{uuid}} ");
        template.push(Template::parse("and {{sequence}}").unwrap());
        let mut out = Vec::new();
        template.render(&Unique::new(7, true), &mut out);
        assert_eq!(out, b"7 {{uuid}} and 7");
        assert_eq!(template.parts.len(), 3);
    }

    #[test]
    fn unknown_and_unclosed_fields_are_errors_that_name_them() {
        assert!(Template::parse("{{guid}}").unwrap_err().contains("`{{guid}}`"));
        assert!(Template::parse("{{uuid").unwrap_err().contains("no `}}`"));
    }
}
