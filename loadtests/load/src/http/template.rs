//! Request texts with unique fields, split once so that a request costs a copy and no parsing.

use bytes::{BufMut as _, Bytes, BytesMut};
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
    Text(Bytes),
    Uuid,
    Sequence,
}

/// A text with fields in it.
#[derive(Debug, Clone)]
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
                parts.push(Part::Text(Bytes::copy_from_slice(before.as_bytes())));
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
            parts.push(Part::Text(Bytes::copy_from_slice(rest.as_bytes())));
        }
        Ok(Self { parts })
    }

    /// True when every rendering is the same.
    pub(super) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text with its fields filled in. `scratch` lends its memory and gets it back when the result is dropped.
    pub(super) fn render(&self, unique: &Unique, scratch: &mut BytesMut) -> Bytes {
        match self.parts.as_slice() {
            [] => return Bytes::new(),
            [Part::Text(text)] => return text.clone(),
            _ => {}
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => scratch.extend_from_slice(text),
                Part::Uuid => {
                    let mut buffer = Uuid::encode_buffer();
                    scratch.extend_from_slice(unique.uuid.hyphenated().encode_lower(&mut buffer).as_bytes());
                }
                Part::Sequence => put_decimal(scratch, unique.sequence),
            }
        }
        scratch.split().freeze()
    }
}

fn put_decimal(out: &mut BytesMut, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, unique: &Unique) -> String {
        let bytes = Template::parse(text).unwrap().render(unique, &mut BytesMut::new());
        String::from_utf8(bytes.to_vec()).unwrap()
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
        assert_eq!(
            template.render(&Unique::new(1, true), &mut BytesMut::new()),
            r#"{"a":{"b":1}}"#
        );
        assert!(!Template::parse("{{uuid}}").unwrap().is_fixed());
    }

    #[test]
    fn unknown_and_unclosed_fields_are_errors_that_name_them() {
        assert!(Template::parse("{{guid}}").unwrap_err().contains("`{{guid}}`"));
        assert!(Template::parse("{{uuid").unwrap_err().contains("no `}}`"));
    }
}
