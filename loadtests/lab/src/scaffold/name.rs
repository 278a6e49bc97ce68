//! The name of an alternative, as configuration, file and type spell it.

use std::fmt;

use super::rust::words;

/// Longest name: it stands in tables and in names of arms.
const LONGEST: usize = 40;

/// What no module can be called.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final fn for \
                        gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super \
                        trait true try type typeof unsafe unsized use virtual where while yield";

/// A name of small letters, digits and single hyphens: `update-last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Takes a name or says what one has to look like.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let part = |part: &str| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit())
        };
        let begins = text.starts_with(|character: char| character.is_ascii_lowercase());
        if !begins || text.len() > LONGEST || !text.split('-').all(part) {
            return Err(format!(
                "`{text}` is no name for an alternative: it has at most {LONGEST} small letters, digits and single hyphens and \
                 begins with a letter, as `update-last` does"
            ));
        }
        if words(KEYWORDS).any(|word| word == text) {
            return Err(format!(
                "`{text}` is no name for an alternative: it is a word of Rust, and the file would be a module of that name"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// `update_last`.
    pub(super) fn module(&self) -> String {
        self.0.replace('-', "_")
    }

    /// `UpdateLast`.
    pub(super) fn type_name(&self) -> String {
        let parts = self.0.split('-');
        parts
            .flat_map(|part| {
                let (first, rest) = part.split_at(1);
                [first.to_uppercase(), rest.to_owned()]
            })
            .collect()
    }

    /// What the name would be mistaken for: something that the template uses under its type's name, or that the axis's `mod.rs`
    /// brings in under its module's.
    pub(super) fn taken(&self, template: &str, around: &str) -> Option<String> {
        let brought_in = around
            .lines()
            .filter(|line| line.starts_with("use ") || line.starts_with("mod "));
        let module = brought_in.flat_map(words).any(|word| word == self.module());
        let type_name = words(template).any(|word| word == self.type_name());
        module
            .then(|| self.module())
            .or_else(|| type_name.then(|| self.type_name()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
