//! Mutations that know JSON: the result can still be written down, and is wrong in one or a few places.

use serde_json::{Map, Number, Value, json};

use crate::random::Random;

/// Texts that have made services stumble.
const TEXTS: [&str; 24] = [
    "",
    " ",
    "\0",
    "a\0b",
    "\u{feff}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{202e}abc",
    "e\u{301}\u{301}\u{301}",
    "👩‍👩‍👧‍👦",
    "'; DROP TABLE tour; --",
    "\\",
    "\"",
    "{{uuid}}",
    "%00",
    "../../etc/passwd",
    "null",
    "NaN",
    "-0",
    "2025-02-29",
    "2025-03-18T24:00:00Z",
    "2016-12-31T23:59:60Z",
    "+262142-12-31T23:59:59.999999999Z",
    "-262143-01-01T00:00:00+23:59",
];

/// Moments that are one, at the edge of what is stored.
const MOMENTS: [&str; 6] = [
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-23:59",
    "2016-12-31T23:59:60Z",
    "2025-03-18T07:05:00.123456789+05:30",
    "1582-10-10T00:00:00Z",
];

const WHOLE: [i64; 16] = [
    0,
    1,
    -1,
    2,
    255,
    256,
    10_000,
    10_001,
    32_768,
    90_000_000,
    180_000_001,
    1_000_000_000,
    i32::MAX as i64,
    i32::MAX as i64 + 1,
    i64::MIN,
    i64::MAX,
];

/// Changes one to four places.
pub(super) fn mutate(random: &mut Random, tour: &mut Value) {
    for _ in 0..=random.below(4) {
        // From the tour as it was: a copy may not be taken while a place in it is changed.
        let other = random.one_in(8).then(|| place(random, tour).clone());
        let at = place(random, tour);
        match other {
            Some(other) => *at = other,
            None => change(random, at),
        }
    }
}

/// Goes down at random; containers are stopped at now and then.
fn place<'a>(random: &mut Random, mut value: &'a mut Value) -> &'a mut Value {
    loop {
        let children = match value {
            Value::Array(list) => list.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        if children == 0 || random.one_in(6) {
            return value;
        }
        let index = random.below(children);
        value = match value {
            Value::Array(list) => &mut list[index],
            Value::Object(members) => members.values_mut().nth(index).expect("less than its length"),
            _ => unreachable!("only containers have children"),
        };
    }
}

fn change(random: &mut Random, at: &mut Value) {
    match random.below(10) {
        0 => *at = scalar(random),
        1 => *at = text(random),
        2 => *at = number(random),
        3 => nest(random, at),
        _ => match at {
            Value::Array(list) => resize(random, list),
            Value::Object(members) => rename(random, members),
            Value::String(text) => retouch(random, text),
            _ => *at = number(random),
        },
    }
}

fn scalar(random: &mut Random) -> Value {
    let values = [
        Value::Null,
        true.into(),
        false.into(),
        json!([]),
        json!({}),
        json!("x"),
        json!(1),
    ];
    let index = random.below(values.len());
    values[index].clone()
}

fn text(random: &mut Random) -> Value {
    if random.one_in(4) {
        let piece = random.pick(&["x", "ü", "👩‍👩‍👧‍👦", "\0", " "]);
        let lengths = [1, 2, 3, 64, 65, 200, 201, 2000, 2001, 20_000];
        return piece.repeat(random.pick(&lengths)).into();
    }
    if random.one_in(3) {
        return random.pick(&MOMENTS).into();
    }
    random.pick(&TEXTS).into()
}

fn number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => u64::MAX.into(),
        1 => {
            let fractions = [0.5, -0.0, 1e300, -1e300, 5e-324, 1.0, 2_147_483_648.0];
            Number::from_f64(random.pick(&fractions)).map_or(Value::Null, Value::Number)
        }
        _ => random.pick(&WHOLE).into(),
    }
}

fn nest(random: &mut Random, at: &mut Value) {
    for _ in 0..random.pick(&[1, 1, 1, 2, 20, 140]) {
        let inner = at.take();
        *at = match random.one_in(2) {
            true => json!([inner]),
            false => json!({ "nested": inner }),
        };
    }
}

fn resize(random: &mut Random, list: &mut Vec<Value>) {
    match random.below(4) {
        0 => list.clear(),
        1 => {
            let index = random.below(list.len().max(1));
            if index < list.len() {
                list.remove(index);
            }
        }
        _ => {
            if let Some(last) = list.last().cloned() {
                list.resize(list.len() + random.pick(&[1, 1, 2, 50, 90, 400]), last);
            }
        }
    }
}

fn rename(random: &mut Random, members: &mut Map<String, Value>) {
    let index = random.below(members.len().max(1));
    let Some(name) = members.keys().nth(index).cloned() else {
        members.insert("unknown".to_owned(), Value::Null);
        return;
    };
    let value = members.shift_remove(&name).unwrap_or_default();
    let other = match random.below(6) {
        // Gone.
        0 => return,
        1 => name.to_uppercase(),
        2 => format!("{name}\0"),
        3 => format!("{name}/~"),
        4 => String::new(),
        // As before, and somewhere else in the order.
        _ => name,
    };
    members.insert(other, value);
}

/// Another text, which usually still fits.
fn retouch(random: &mut Random, text: &mut String) {
    match random.below(4) {
        0 => {
            text.pop();
        }
        1 => text.push_str(random.pick(&["x", " ", "ü", "\0", "\u{7f}"])),
        2 => *text = text.chars().rev().collect(),
        _ => *text = text.replace(['0', '1'], random.pick(&["9", "x", ""])),
    }
}
