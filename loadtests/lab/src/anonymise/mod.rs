//! Captured JSON payloads without the people in them: structure, nesting, types, lengths and repeats stay, personal values
//! go.
//!
//! Values are collected over all documents first, so that one that stands in several places, or several files, becomes
//! the same everywhere. What comes out is searched for what was taken out.

mod rules;
mod synthetic;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use rules::{ELEMENT, Replace, Rule, Search};

pub(crate) use rules::{Rules, SHIPPED};

/// A value shorter than this is replaced where a rule names it and nowhere else, nor is it searched for: it would be
/// found by chance.
const TELLING: usize = 4;
/// Leaks that an error names.
const NAMED: usize = 5;

/// A payload on its way from captured to anonymous.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// What messages call it.
    pub(crate) name: String,
    pub(crate) root: Value,
}

/// What was done, by place and not by value: a report must not repeat what it is about.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    pub(crate) replaced: Vec<Line>,
    pub(crate) left: Vec<Line>,
}

/// One place; elements of an array are one place together.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Line {
    pub(crate) place: String,
    /// Name of the rule and what it does, `names: synthetic`; absent for what is left.
    pub(crate) by: Option<String>,
    pub(crate) values: usize,
    pub(crate) distinct: usize,
}

/// A string or a number, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scalar {
    Text(String),
    Number(String),
}

impl Scalar {
    /// `None` for what tells nothing about anybody: null, booleans, empty texts, and what has members.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) if text.chars().any(char::is_alphanumeric) => Some(Self::Text(text.clone())),
            Value::Number(number) => Some(Self::Number(number.to_string())),
            _ => None,
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number(text) => text,
        }
    }

    fn is_telling(&self) -> bool {
        self.as_str().chars().count() >= TELLING
    }
}

/// A value that must go.
struct Old {
    replace: Replace,
    search: Search,
    /// Where it was found first.
    place: String,
}

/// Replaces what the rules call personal, in all documents.
///
/// # Errors
/// A value for which there is no other of its make, or places in which an old value would still be found. The documents
/// are then not to be written.
pub(crate) fn anonymise(documents: &mut [Document], rules: &Rules) -> Result<Report, String> {
    let mut seen = Seen::default();
    for document in &mut *documents {
        walk(
            &mut document.root,
            &mut Vec::new(),
            None,
            rules,
            &mut |value, path, rule| {
                collect(value, path, rule, &mut seen);
            },
        );
    }
    let new = replacements(&seen.old)?;
    for document in &mut *documents {
        walk(
            &mut document.root,
            &mut Vec::new(),
            None,
            rules,
            &mut |value, _, rule| {
                replace(value, rule, &new);
            },
        );
    }
    search(documents, &seen.old)?;
    Ok(seen.report())
}

/// What was met on the way through the documents.
#[derive(Default)]
struct Seen {
    old: BTreeMap<Scalar, Old>,
    places: BTreeMap<(String, Option<String>), Vec<String>>,
    /// Place of every value that no rule names; whether it is equal to one that goes is only known at the end.
    others: Vec<(String, Scalar)>,
}

impl Seen {
    fn report(mut self) -> Report {
        for (place, scalar) in self.others {
            let by = self
                .old
                .contains_key(&scalar)
                .then_some(())
                .filter(|()| scalar.is_telling())
                .map(|()| "equal to a value that was replaced".to_owned());
            self.places
                .entry((place, by))
                .or_default()
                .push(scalar.as_str().to_owned());
        }
        let mut report = Report::default();
        for ((place, by), values) in self.places {
            let list = if by.is_some() {
                &mut report.replaced
            } else {
                &mut report.left
            };
            list.push(Line {
                place,
                by,
                values: values.len(),
                distinct: values.iter().collect::<BTreeSet<_>>().len(),
            });
        }
        report
    }
}

/// The rule for a value: by its place, else by what it looks like, else what holds for the field it lies under.
fn rule_for<'a>(value: &Value, path: &[String], inherited: Option<&'a Rule>, rules: &'a Rules) -> Option<&'a Rule> {
    let by_looks = || value.as_str().and_then(|text| rules.of_value(text));
    rules.of_field(path).or_else(by_looks).or(inherited)
}

/// Calls `each` with every scalar, its place and the rule for it.
fn walk<'a>(
    value: &mut Value,
    path: &mut Vec<String>,
    inherited: Option<&'a Rule>,
    rules: &'a Rules,
    each: &mut impl FnMut(&mut Value, &[String], Option<&'a Rule>),
) {
    let rule = rule_for(value, path, inherited, rules);
    let inherited = rule.and_then(Rule::below).or(inherited);
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                path.push(key.clone());
                walk(below, path, inherited, rules, each);
                path.pop();
            }
        }
        Value::Array(elements) => {
            path.push(ELEMENT.to_owned());
            for element in elements {
                walk(element, path, inherited, rules, each);
            }
            path.pop();
        }
        _ => each(value, path, rule),
    }
}

fn collect(value: &Value, path: &[String], rule: Option<&Rule>, seen: &mut Seen) {
    let Some(scalar) = Scalar::of(value) else { return };
    let place = format!("/{}", path.join("/"));
    let Some(rule) = rule.filter(|rule| rule.replace != Replace::Keep) else {
        // A value that a rule keeps is kept also where it equals another: the search decides whether that may be.
        seen.others.push((place, scalar));
        return;
    };
    let does = if rule.replace == Replace::Null {
        "null"
    } else {
        "synthetic"
    };
    let by = Some(format!("{}: {does}", rule.name));
    seen.places
        .entry((place.clone(), by))
        .or_default()
        .push(scalar.as_str().to_owned());
    let old = seen.old.entry(scalar).or_insert(Old {
        replace: rule.replace,
        search: rule.search,
        place,
    });
    // The stricter of two rules for the same value.
    old.search = old.search.max(rule.search);
    if rule.replace == Replace::Synthetic {
        old.replace = Replace::Synthetic;
    }
}

/// Another value for each that goes; different ones for different ones.
fn replacements(old: &BTreeMap<Scalar, Old>) -> Result<BTreeMap<Scalar, Value>, String> {
    let known: Vec<(String, Search)> = old
        .iter()
        .map(|(scalar, old)| (scalar.as_str().to_lowercase(), old.search))
        .collect();
    // A new value may not be an old one again, nor contain one.
    let refused = |new: &str| {
        let new = new.to_lowercase();
        known.iter().any(|(old, search)| occurs(old, &new, *search))
    };
    let mut used = BTreeSet::new();
    let mut all = BTreeMap::new();
    for (scalar, old) in old {
        let value = match (old.replace, scalar) {
            (Replace::Synthetic, Scalar::Text(text)) => synthetic::text(text, refused, &mut used).map(Value::String),
            (Replace::Synthetic, Scalar::Number(text)) => {
                synthetic::number(text, refused, &mut used).and_then(|new| serde_json::from_str(&new).ok())
            }
            _ => Some(Value::Null),
        };
        let value = value.ok_or_else(|| {
            format!(
                "{}: there are not enough other values of the make of the one there ({} characters); have a rule \
                 replace this field by null",
                old.place,
                scalar.as_str().chars().count()
            )
        })?;
        all.insert(scalar.clone(), value);
    }
    Ok(all)
}

fn replace(value: &mut Value, rule: Option<&Rule>, new: &BTreeMap<Scalar, Value>) {
    let Some(scalar) = Scalar::of(value) else { return };
    let Some(other) = new.get(&scalar) else { return };
    match rule.map(|rule| rule.replace) {
        Some(Replace::Keep) => {}
        Some(Replace::Null) => *value = Value::Null,
        Some(Replace::Synthetic) => *value = other.clone(),
        None if scalar.is_telling() => *value = other.clone(),
        None => {}
    }
}

/// Looks for every old value in what came out.
fn search(documents: &[Document], old: &BTreeMap<Scalar, Old>) -> Result<(), String> {
    let telling: Vec<(String, &Old)> = old
        .iter()
        .filter(|(scalar, _)| scalar.is_telling())
        .map(|(scalar, old)| (scalar.as_str().to_lowercase(), old))
        .collect();
    let mut leaks = Vec::new();
    for document in documents {
        visit(&document.root, &mut Vec::new(), &mut |place, text, is_key| {
            let text = text.to_lowercase();
            let found = telling.iter().find(|(old, about)| occurs(old, &text, about.search));
            if let Some((_, about)) = found {
                let what = if is_key { "the field's name" } else { "the value" };
                leaks.push(format!(
                    "{}: {what} at {place} still has what was taken out at {}",
                    document.name, about.place
                ));
            }
        });
    }
    if leaks.is_empty() {
        return Ok(());
    }
    let more = leaks.len().saturating_sub(NAMED);
    leaks.truncate(NAMED);
    if more > 0 {
        leaks.push(format!("and {more} more places"));
    }
    Err(format!(
        "nothing was written, because personal values would be left:\n  {}\ngive a rule for these fields, or \
         `search = \"whole\"` to the rule whose values occur by chance",
        leaks.join("\n  ")
    ))
}

/// Both in lower case.
fn occurs(old: &str, text: &str, search: Search) -> bool {
    old == text || (search == Search::Anywhere && old.chars().count() >= TELLING && text.contains(old))
}

/// Calls `look` with every field name and scalar: place, text, whether it is a name.
fn visit(value: &Value, path: &mut Vec<String>, look: &mut impl FnMut(&str, &str, bool)) {
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                path.push(key.clone());
                look(&format!("/{}", path.join("/")), key, true);
                visit(below, path, look);
                path.pop();
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                path.push(index.to_string());
                visit(element, path, look);
                path.pop();
            }
        }
        _ => {
            if let Some(scalar) = Scalar::of(value) {
                look(&format!("/{}", path.join("/")), scalar.as_str(), false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
