//! The few changes that make another alternative's file of one: lines and words, no syntax.

use super::Name;

/// The identifiers in a text, and what else looks like one.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !part_of_word(character))
        .filter(|word| !word.is_empty())
}

/// The text below the comment that a file begins with.
pub(super) fn after_module_comment(source: &str) -> &str {
    let comment: usize = source
        .split_inclusive('\n')
        .take_while(|line| line.starts_with("//!"))
        .map(str::len)
        .sum();
    &source[comment..]
}

/// Another name for the alternative in strings, and for its type.
pub(super) fn rename(code: &str, from: &Name, to: &Name) -> String {
    let code = code
        .replace(&format!("\"{from}\""), &format!("\"{to}\""))
        .replace(&format!("\\\"{from}\\\""), &format!("\\\"{to}\\\""));
    replace_word(&code, &from.type_name(), &to.type_name())
}

/// Another line for the only one that begins so.
pub(super) fn replace_line(code: &str, begin: &str, line: &str) -> Result<String, String> {
    let found = code.lines().filter(|line| line.starts_with(begin)).count();
    if found != 1 {
        return Err(format!("{found} lines begin with `{}`", begin.trim()));
    }
    let lines = code.lines().map(|old| if old.starts_with(begin) { line } else { old });
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// Lines before the first that begins so.
pub(super) fn insert_before(code: &str, begin: &str, lines: &str) -> Result<String, String> {
    let at = code
        .find(&format!("\n{begin}"))
        .ok_or_else(|| format!("no line begins with `{begin}`"))?;
    let (before, after) = code.split_at(at + 1);
    Ok(format!("{before}{lines}{after}"))
}

fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, found) = rest.split_at(at);
        let after = &found[from.len()..];
        let inside = before.ends_with(part_of_word) || after.starts_with(part_of_word);
        replaced += before;
        replaced += if inside { from } else { to };
        rest = after;
    }
    replaced + rest
}

fn part_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}
