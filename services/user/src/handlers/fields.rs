//! The members of a JSON request whose values may be secrets: no value gets into an error.

use std::fmt;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use chassis::problem::{Json, Problem};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The members of an object, each at most once.
pub(crate) struct Fields(Vec<(String, Value)>);

impl Fields {
    /// Takes a text that must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<String, Problem> {
        self.optional(name)?.ok_or_else(|| invalid(name, "is missing"))
    }

    /// Takes a text that may be missing or `null`.
    pub(super) fn optional(&mut self, name: &str) -> Result<Option<String>, Problem> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        match self.0.swap_remove(at).1 {
            Value::String(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(invalid(name, "must be a string")),
        }
    }

    /// Refuses what nobody has taken: a misspelt member would otherwise be ignored in silence.
    pub(super) fn end(self) -> Result<(), Problem> {
        match self.0.first() {
            Some((name, _)) => Err(invalid(name, "is no member of this request")),
            None => Ok(()),
        }
    }
}

/// 422 that names the member; `reason` completes the sentence.
pub(super) fn invalid(name: &str, reason: &str) -> Problem {
    let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-body", "Invalid body")
        .detail(format!("{name} {reason}."))
        .field(pointer)
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        Json::<Self>::from_request(request, state)
            .await
            .map(|Json(fields)| fields)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Members)
    }
}

/// Every kind of value has a method of its own here, since the provided ones quote what they were given.
struct Members;

const NO_OBJECT: &str = "the body must be an object";

impl<'de> Visitor<'de> for Members {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if members.iter().any(|(known, _)| *known == name) {
                return Err(A::Error::custom("a member occurs twice"));
            }
            members.push((name, value));
        }
        Ok(Fields(members))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_unit<E: Error>(self) -> Result<Fields, E> {
        Err(E::custom(NO_OBJECT))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Fields, A::Error> {
        Err(A::Error::custom(NO_OBJECT))
    }
}
