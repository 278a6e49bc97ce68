//! Durations as people write them: `500ms`, `2s`, `1.5s`, `2m`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Parses a number with a unit (`us`, `ms`, `s`, `m`, `h`).
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write a number with a unit, such as 500ms, 20s or 2m");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let number: f64 = text[..split].trim().parse().map_err(|_| wrong())?;
    let unit_s = match &text[split..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| wrong())
}

/// The shortest of the forms that [`parse`] reads back unchanged.
pub(crate) fn format(duration: Duration) -> String {
    let us = duration.as_micros();
    if us.is_multiple_of(60_000_000) && us > 0 {
        format!("{}m", us / 60_000_000)
    } else if us.is_multiple_of(1_000_000) {
        format!("{}s", us / 1_000_000)
    } else if us.is_multiple_of(1000) {
        format!("{}ms", us / 1000)
    } else {
        format!("{us}us")
    }
}

/// For `#[serde(with)]`.
pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For `#[serde(with)]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// For `#[serde(with)]` on a duration that may be absent.
pub(crate) mod option {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_str(&super::format(*duration)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| super::parse(&text).map_err(D::Error::custom))
            .transpose()
    }
}

/// For `#[serde(with)]` on a map whose values are durations.
pub(crate) mod map {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(crate) fn serialize<K: Serialize + Ord, S: Serializer>(
        map: &BTreeMap<K, Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(key, value)| (key, super::format(*value))))
    }

    pub(crate) fn deserialize<'de, K: Deserialize<'de> + Ord, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<K, Duration>, D::Error> {
        let texts = BTreeMap::<K, String>::deserialize(deserializer)?;
        texts
            .into_iter()
            .map(|(key, text)| Ok((key, super::parse(&text).map_err(D::Error::custom)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_back_as_it_was_written() {
        for text in ["500us", "1ms", "500ms", "20s", "2m"] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
        assert_eq!(parse("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse("120s").unwrap(), parse("2m").unwrap());
    }

    #[test]
    fn a_number_without_a_unit_is_refused_with_the_form_to_use() {
        for text in ["20", "", "s", "-1s", "2 weeks"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("500ms"), "{error}");
        }
    }
}
