//! The script of `pgbench`: a captured transaction whose identifiers are new each time.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::capture::Statement;

/// Length of a UUID as text.
const UUID_CHARS: usize = 36;
/// The variable that counts a client's tours. A run defines it as its begin in µs since 1970, which has 16 digits: what was
/// made before lies behind.
pub(super) const COUNTER: &str = "n";
/// By how much it grows from tour to tour: more than there are clients.
const STEP: usize = 100;

/// The script that does again, with new identifiers, what two tours did. A parameter that was equal in both is a
/// constant; UUIDs in the others become new ones that agree with each other where the captured ones did.
///
/// # Errors
/// The two are not the same statements.
pub(super) fn of(first: &[Statement], second: &[Statement]) -> anyhow::Result<String> {
    let texts = |statements: &[Statement]| statements.iter().map(|each| each.text.clone()).collect::<Vec<_>>();
    anyhow::ensure!(
        texts(first) == texts(second),
        "two tours were not written by the same statements"
    );

    // Sixteen digits that no other tour has, and that grow as the service's identifiers do.
    let mut script = format!("\\set {COUNTER} :{COUNTER} + {STEP}\n\\set id :{COUNTER} + :client_id\n");
    let mut identifiers = Identifiers::default();
    for (one, other) in first.iter().zip(second) {
        let counts = [one.parameters.len(), other.parameters.len(), one.types.len()];
        anyhow::ensure!(
            counts.iter().all(|count| *count == counts[0]),
            "a statement was sent with {} parameters, then with {}, and the server tells {} types: {}",
            counts[0],
            counts[1],
            counts[2],
            one.text
        );
        let values: Vec<String> = one
            .parameters
            .iter()
            .zip(&other.parameters)
            .zip(&one.types)
            .map(|((value, again), of_type)| match value {
                None => "NULL".to_owned(),
                Some(value) if Some(value) == again.as_ref() => literal(value),
                Some(value) => identifiers.renewed(value, of_type),
            })
            .collect();
        script.push_str(&bound(&one.text, &values));
        script.push_str(";\n");
    }
    Ok(script)
}

/// UUIDs that differ from tour to tour, numbered as they appear.
#[derive(Default)]
struct Identifiers(BTreeMap<Uuid, usize>);

impl Identifiers {
    /// An expression for a value like this one with other UUIDs in it; a value without any stays as it was. What is put
    /// together would be a text, and a function is found by the types of its arguments.
    fn renewed(&mut self, value: &str, of_type: &str) -> String {
        let mut pieces = Vec::new();
        let mut rest = value;
        while let Some((at, uuid)) = first_uuid(rest) {
            pieces.extend((at > 0).then(|| literal(&rest[..at])));
            pieces.push(self.expression(uuid));
            rest = &rest[at + UUID_CHARS..];
        }
        if pieces.is_empty() {
            return literal(value);
        }
        pieces.extend((!rest.is_empty()).then(|| literal(rest)));
        format!("({})::{of_type}", pieces.join(" || "))
    }

    /// Sixteen digits of the tour and sixteen of the identifier: little work for a server that is to be measured.
    fn expression(&mut self, uuid: Uuid) -> String {
        let next = self.0.len();
        let number = *self.0.entry(uuid).or_insert(next);
        format!(":id::text || '{number:016x}'")
    }
}

/// The first UUID in a text, and where it begins.
fn first_uuid(text: &str) -> Option<(usize, Uuid)> {
    (0..text.len().saturating_sub(UUID_CHARS - 1))
        .find_map(|at| Some((at, Uuid::try_parse(text.get(at..at + UUID_CHARS)?).ok()?)))
}

/// The statement on one line, with values in place of `$1` ….
fn bound(text: &str, values: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].chars().take_while(char::is_ascii_digit).count();
        out.push_str(&rest[..at]);
        let value = rest[at + 1..at + 1 + digits]
            .parse::<usize>()
            .ok()
            .and_then(|number| values.get(number.wrapping_sub(1)));
        out.push_str(value.map_or("$", String::as_str));
        rest = &rest[at + 1 + if value.is_some() { digits } else { 0 }..];
    }
    out.push_str(rest);
    out.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches(';')
        .to_owned()
}

/// A string constant in which `pgbench` sees no `:variable`.
fn literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    if value.contains([':', '\\', '\n', '\t']) || value.contains("  ") {
        let escaped = quoted
            .replace('\\', "\\\\")
            .replace(':', "\\x3a")
            .replace('\n', "\\n")
            .replace('\t', "\\t");
        return format!("E'{}'", escaped.replace(' ', "\\x20"));
    }
    format!("'{quoted}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str, parameters: &[(Option<&str>, &str)]) -> Statement {
        Statement {
            text: text.to_owned(),
            parameters: parameters.iter().map(|(value, _)| value.map(str::to_owned)).collect(),
            types: parameters.iter().map(|(_, of_type)| (*of_type).to_owned()).collect(),
        }
    }

    fn tour(id: &str, at: &str) -> Vec<Statement> {
        vec![
            statement("BEGIN", &[]),
            statement(
                "INSERT INTO tour (id,\n number, at, note, tenant)\nVALUES ($1, $2, $3, $4, $5)",
                &[
                    (Some(id), "uuid"),
                    (Some(&format!("T-{id}")), "text"),
                    (Some(at), "time without time zone"),
                    (None, "text"),
                    (Some("it's"), "text"),
                ],
            ),
            // A key that looks like an identifier.
            statement("SELECT find($1)", &[(Some(id), "text")]),
            statement("COMMIT", &[]),
        ]
    }

    const ONE: &str = "0190f5fe-7c00-7a00-8000-000000000001";
    const TWO: &str = "0190f5fe-7c00-7a00-8000-000000000002";
    const THREE: &str = "0190f5fe-7c00-7a00-8000-000000000003";
    const FOUR: &str = "0190f5fe-7c00-7a00-8000-000000000004";

    #[test]
    fn identifiers_are_new_and_agree_while_constants_stay() {
        let script = of(&tour(ONE, "10:00:01"), &tour(TWO, "10:00:02")).unwrap();
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(lines[..2], ["\\set n :n + 100", "\\set id :n + :client_id"]);
        assert_eq!(lines[2], "BEGIN;");
        assert_eq!(
            lines[3],
            "INSERT INTO tour (id, number, at, note, tenant) VALUES ((:id::text || '0000000000000000')::uuid, \
             ('T-' || :id::text || '0000000000000000')::text, E'10\\x3a00\\x3a01', NULL, 'it''s');"
        );
        assert_eq!(lines[4], "SELECT find((:id::text || '0000000000000000')::text);");
        assert_eq!(lines[5], "COMMIT;");
    }

    #[test]
    fn every_identifier_of_an_array_is_new() {
        let rows = |ids: [&str; 2]| {
            let ids = format!("{{{},{}}}", ids[0], ids[1]);
            let text = "INSERT INTO stop (id, name) SELECT * FROM unnest($1::uuid[], $2::text[])";
            vec![statement(
                text,
                &[(Some(&ids), "uuid[]"), (Some("{\"stop 1\",NULL}"), "text[]")],
            )]
        };
        let script = of(&rows([ONE, TWO]), &rows([THREE, FOUR])).unwrap();
        assert_eq!(
            script.lines().nth(2).unwrap(),
            "INSERT INTO stop (id, name) SELECT * FROM unnest(('{' || :id::text || '0000000000000000' || ',' || :id::text \
             || '0000000000000001' || '}')::uuid[]::uuid[], '{\"stop 1\",NULL}'::text[]);"
        );
    }

    #[test]
    fn tours_written_in_different_ways_are_refused() {
        assert!(of(&tour(ONE, "a"), &tour(TWO, "b")[1..]).is_err());
    }

    #[test]
    fn a_parameter_without_a_type_is_refused_and_not_left_out() {
        let mut first = tour(ONE, "a");
        first[1].types.pop();
        let refused = of(&first, &tour(TWO, "b")).unwrap_err().to_string();
        assert!(
            refused.contains("5 parameters") && refused.contains("4 types"),
            "{refused}"
        );
    }
}
