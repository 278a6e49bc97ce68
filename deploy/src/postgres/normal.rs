//! Whether two notations of a parameter mean the same: `1GB` in a preset is `131072` in units of `8kB` to the server.

/// A row of `pg_settings`, as far as comparing needs it.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) value: String,
    pub(super) unit: Option<String>,
    /// `bool`, `integer`, `real`, `enum` or `string`.
    pub(super) kind: String,
}

/// True when `wanted`, as it would stand in a configuration file, is what the server has.
pub(super) fn agrees(wanted: &str, setting: &Setting) -> bool {
    match setting.kind.as_str() {
        "bool" => matches!((truth(wanted), truth(&setting.value)), (Some(a), Some(b)) if a == b),
        "integer" | "real" => {
            let unit = setting.unit.as_deref();
            match (number(wanted, unit), number(&setting.value, unit)) {
                (Some(a), Some(b)) if setting.kind == "integer" => (a - b).abs() < 0.5,
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs(),
                _ => false,
            }
        }
        "enum" => {
            wanted.eq_ignore_ascii_case(&setting.value)
                // Many enumerations take the words of a bool beside their own.
                || matches!((truth(wanted), truth(&setting.value)), (Some(a), Some(b)) if a == b)
        }
        _ => wanted == setting.value,
    }
}

fn truth(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// The number in units of `base`; without a unit of its own it already is. `None` for what is no number, or a unit of
/// another dimension.
fn number(text: &str, base: Option<&str>) -> Option<f64> {
    let text = text.trim();
    if let Ok(plain) = text.parse::<f64>() {
        return Some(plain);
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = text.split_at(split);
    let value: f64 = digits.trim().parse().ok()?;
    let (factor, dimension) = unit_of(unit.trim())?;
    let (base_factor, base_dimension) = base_unit(base?)?;
    (dimension == base_dimension).then(|| value * factor / base_factor)
}

/// `8kB`, the unit of what is counted in pages, is a multiple with a number in front.
fn base_unit(base: &str) -> Option<(f64, Dimension)> {
    let split = base.find(|c: char| c.is_ascii_alphabetic())?;
    let (digits, unit) = base.split_at(split);
    let times = if digits.is_empty() { 1.0 } else { digits.parse().ok()? };
    let (factor, dimension) = unit_of(unit)?;
    Some((times * factor, dimension))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Memory,
    Time,
}

/// In bytes or milliseconds; PostgreSQL's units are case-sensitive.
fn unit_of(unit: &str) -> Option<(f64, Dimension)> {
    use Dimension::{Memory, Time};
    Some(match unit {
        "B" => (1.0, Memory),
        "kB" => (1024.0, Memory),
        "MB" => (1024.0 * 1024.0, Memory),
        "GB" => (1024.0 * 1024.0 * 1024.0, Memory),
        "TB" => (1024.0 * 1024.0 * 1024.0 * 1024.0, Memory),
        "us" => (0.001, Time),
        "ms" => (1.0, Time),
        "s" => (1000.0, Time),
        "min" => (60_000.0, Time),
        "h" => (3_600_000.0, Time),
        "d" => (86_400_000.0, Time),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations_of_one_value_agree_and_of_another_do_not() {
        for (wanted, value, unit, kind, same) in [
            ("1GB", "131072", Some("8kB"), "integer", true),
            ("128MB", "16384", Some("8kB"), "integer", true),
            ("128MB", "131072", Some("8kB"), "integer", false),
            ("64MB", "8192", Some("8kB"), "integer", true),
            ("30", "30", Some("s"), "integer", true),
            ("5min", "300", Some("s"), "integer", true),
            ("200ms", "200", Some("ms"), "integer", true),
            ("200MB", "200", Some("ms"), "integer", false),
            ("1e300", "1e+300", None, "real", true),
            ("0.9", "0.8", None, "real", false),
            ("off", "off", None, "enum", true),
            ("false", "off", None, "enum", true),
            ("remote_apply", "on", None, "enum", false),
            ("yes", "on", None, "bool", true),
            ("off", "on", None, "bool", false),
            ("stderr,jsonlog", "stderr,jsonlog", None, "string", true),
        ] {
            let setting = Setting {
                value: value.to_owned(),
                unit: unit.map(str::to_owned),
                kind: kind.to_owned(),
            };
            assert_eq!(agrees(wanted, &setting), same, "{wanted} and {value} {unit:?}");
        }
    }
}
