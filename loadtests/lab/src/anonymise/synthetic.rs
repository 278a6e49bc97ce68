//! Values that look like others and are none of them.

use std::collections::BTreeSet;

use rand::RngExt as _;

/// Attempts at a value that is new before its make is taken to allow none.
const TRIES: usize = 200;
const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
const VOWELS: &[u8] = b"aeiou";

/// A text of the same make: as many characters, letters for letters of the same case, digits for digits, everything else
/// as it was. `None` when there is no such text that `refused` lets pass.
pub(super) fn text(like: &str, refused: impl Fn(&str) -> bool, used: &mut BTreeSet<String>) -> Option<String> {
    drawn(|| redraw(like), refused, used)
}

/// A number with as many digits and the same sign and point. It is not greater in size than the old one where that leaves
/// a choice, so that what had to be within bounds (a latitude) still is.
pub(super) fn number(like: &str, refused: impl Fn(&str) -> bool, used: &mut BTreeSet<String>) -> Option<String> {
    let digits: String = like.chars().filter(char::is_ascii_digit).collect();
    // An exponent would be taken for digits; such a number is nobody's.
    let old: u64 = digits.parse().ok().filter(|_| !like.contains(['e', 'E']))?;
    let least = 10_u64.checked_pow(u32::try_from(digits.len()).ok()?.saturating_sub(1))?;
    let whole_part = like.trim_start_matches('-').find('.').unwrap_or(digits.len());
    // 0.12 has a leading zero that it keeps.
    let least = if whole_part == 1 && digits.starts_with('0') {
        0
    } else {
        least
    };
    let most = if old > least.saturating_add(10) {
        old
    } else {
        least.saturating_mul(10).saturating_sub(1).max(9)
    };
    drawn(
        || {
            let new = format!(
                "{:0width$}",
                rand::rng().random_range(least..=most),
                width = digits.len()
            );
            let mut new = new.chars();
            let same = |c: char| {
                if c.is_ascii_digit() {
                    new.next().unwrap_or('0')
                } else {
                    c
                }
            };
            like.chars().map(same).collect()
        },
        refused,
        used,
    )
}

fn drawn(draw: impl Fn() -> String, refused: impl Fn(&str) -> bool, used: &mut BTreeSet<String>) -> Option<String> {
    let found = (0..TRIES)
        .map(|_| draw())
        .find(|new| !used.contains(new) && !refused(new))?;
    used.insert(found.clone());
    Some(found)
}

fn redraw(like: &str) -> String {
    let mut rng = rand::rng();
    let mut letters = 0_usize;
    like.chars()
        .map(|c| {
            if c.is_ascii_digit() {
                letters = 0;
                return char::from(b'0' + rng.random_range(0..10));
            }
            if !c.is_alphabetic() {
                letters = 0;
                return c;
            }
            // Consonants and vowels in turn: a report with such names can still be read aloud.
            let of = if letters.is_multiple_of(2) { CONSONANTS } else { VOWELS };
            letters += 1;
            let letter = char::from(of[rng.random_range(0..of.len())]);
            if c.is_uppercase() {
                letter.to_ascii_uppercase()
            } else {
                letter
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_length_and_make() {
        let mut used = BTreeSet::new();
        let new = text("Jörg O'Neil-4711 Ä", |_| false, &mut used).unwrap();
        assert_eq!(new.chars().count(), 18);
        let make = |text: &str| -> Vec<u8> {
            let class = |c: char| match c {
                _ if c.is_ascii_digit() => b'9',
                _ if c.is_uppercase() => b'A',
                _ if c.is_alphabetic() => b'a',
                _ => b'.',
            };
            text.chars().map(class).collect()
        };
        assert_eq!(make(&new), make("Jörg O'Neil-4711 Ä"));
    }

    #[test]
    fn a_number_keeps_its_digits_and_does_not_leave_its_bounds() {
        let mut used = BTreeSet::new();
        for like in ["53101371", "-179.25", "90.001", "0.125", "1000", "7"] {
            for _ in 0..5 {
                let Some(new) = number(like, |new| new == like, &mut used) else {
                    continue;
                };
                assert_eq!(new.len(), like.len(), "{like} -> {new}");
                assert_eq!(new.starts_with('-'), like.starts_with('-'));
                assert_eq!(new.find('.'), like.find('.'));
                let (old, new): (f64, f64) = (like.parse().unwrap(), new.parse().unwrap());
                assert!(new.abs() <= old.abs() || old.abs() < 2000.0, "{old} -> {new}");
                assert!(old.abs() < 100.0 || new.abs() >= 100.0, "{old} -> {new}");
            }
        }
        assert_eq!(number("1e9", |_| false, &mut used), None);
    }

    #[test]
    fn no_value_is_given_twice_and_none_that_is_refused() {
        let mut used = BTreeSet::new();
        let all: BTreeSet<_> = std::iter::from_fn(|| text("7", |new| new == "3", &mut used)).collect();
        assert!(all.len() >= 8 && !all.contains("3"), "{all:?}");
    }
}
