//! Whether a statement locks rows of a hot relation against others who want to change them.

/// True for `UPDATE`, `DELETE FROM` and `INSERT INTO … ON CONFLICT … DO UPDATE` of one of the relations, also inside a
/// larger statement, and for a `SELECT` of it `FOR UPDATE` or `FOR NO KEY UPDATE`.
pub(super) fn locks(statement: &[u8], hot: &[String]) -> bool {
    let text = String::from_utf8_lossy(statement).to_lowercase();
    let words: Vec<&str> = words(&text);
    let is_hot = |word: Option<&&str>| word.is_some_and(|word| hot.iter().any(|hot| relation(word) == hot.as_str()));
    let mut inserted = false;
    for (index, word) in words.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).map(|at| words[at]);
        let after = match words.get(index + 1) {
            Some(&"only") => words.get(index + 2),
            next => next,
        };
        match *word {
            "update" => {
                let selected = before(1) == Some("for") || (before(1) == Some("key") && before(3) == Some("for"));
                let seen = || words[..index].iter().any(|word| is_hot(Some(word)));
                if is_hot(after) || (selected && seen()) || (before(1) == Some("do") && inserted) {
                    return true;
                }
            }
            "from" if before(1) == Some("delete") && is_hot(after) => return true,
            "into" => inserted |= is_hot(after),
            _ => {}
        }
    }
    false
}

/// Keywords and names; the contents of string literals are neither.
fn words(text: &str) -> Vec<&str> {
    let outside = text.split('\'').step_by(2);
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$');
    outside
        .flat_map(|piece| piece.split(move |c| !part(c)))
        .filter(|word| !word.is_empty())
        .collect()
}

/// The name without its schema and its quotes.
fn relation(word: &str) -> &str {
    word.rsplit('.').next().unwrap_or(word).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::locks;

    #[test]
    fn only_what_locks_rows_of_the_relation_counts() {
        let hot = ["tenant_config".to_owned()];
        for (statement, expected) in [
            ("UPDATE tenant_config SET a=$1 WHERE id=$2", true),
            ("update only public.\"tenant_config\" set a=1", true),
            ("SELECT id FROM tenant_config WHERE id=$1 FOR UPDATE", true),
            (
                "SELECT id\nFROM tenant_config\nFOR NO KEY UPDATE OF tenant_config SKIP LOCKED",
                true,
            ),
            ("WITH ins AS (INSERT INTO tour …) UPDATE tenant_config SET a=1", true),
            (
                "INSERT INTO tenant_config VALUES (1) ON CONFLICT (id) DO UPDATE SET a=1",
                true,
            ),
            ("DELETE FROM tenant_config", true),
            ("SELECT id FROM tenant_config", false),
            ("SELECT id FROM tour FOR UPDATE", false),
            ("UPDATE tenant_config_slot SET a=1", false),
            ("INSERT INTO tenant_config VALUES (1)", false),
            ("INSERT INTO log VALUES ('update tenant_config')", false),
            ("UPDATE tour SET a = (SELECT a FROM tenant_config)", false),
            ("COMMIT", false),
            ("", false),
        ] {
            assert_eq!(locks(statement.as_bytes(), &hot), expected, "{statement}");
        }
    }
}
