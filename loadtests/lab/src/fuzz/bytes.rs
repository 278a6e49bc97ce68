//! Mutations of the written text, which is often no JSON afterwards.

use crate::random::Random;

/// Pieces that matter to a parser.
const PIECES: [&[u8]; 18] = [
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\u0000",
    b"\\u12",
    b"\\",
    b"\"",
    b"\0",
    b"\xff\xfe",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"1e999",
    b"-",
    b"{",
    b"]",
    b",",
    b"/* */",
    b"NaN",
    b"\n",
];

/// Changes one to three places.
pub(super) fn mutate(random: &mut Random, text: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(text.len().max(1)).min(text.len());
        match random.below(10) {
            0 => text.truncate(at),
            1 => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            2 => {
                let end = (at + random.below(64)).min(text.len());
                text.drain(at..end);
            }
            3 => {
                let end = (at + random.below(2000)).min(text.len());
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
            4 | 5 => insert(text, at, random.pick(&PIECES)),
            6 => number(random, text, at),
            7 | 8 => twice(random, text, at),
            _ => long(random, text, at),
        }
    }
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    text.splice(at..at, piece.iter().copied());
}

/// Makes the next number another one, of a form that no library would write.
fn number(random: &mut Random, text: &mut Vec<u8>, at: usize) {
    let Some(start) = text[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else {
        return;
    };
    let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let other: [&[u8]; 9] = [
        b"1e999",
        b"-1e999",
        b"1e-999",
        b"0123",
        b"1.",
        b"0x10",
        b"99999999999999999999999999999999999999",
        b"1E2",
        b"-0",
    ];
    text.splice(start..start + digits, random.pick(&other).iter().copied());
}

/// Writes the next member twice, at times by another spelling of its name.
fn twice(random: &mut Random, text: &mut Vec<u8>, at: usize) {
    let Some(colon) = text[at..]
        .windows(2)
        .position(|pair| pair == b"\":")
        .map(|offset| at + offset)
    else {
        return;
    };
    let Some(open) = text[..colon].iter().rposition(|byte| *byte == b'"') else {
        return;
    };
    let mut name = text[open + 1..colon].to_vec();
    if random.one_in(2)
        && let Some(first) = name.first().copied()
    {
        name.splice(..1, format!("\\u{first:04x}").into_bytes());
    }
    let value = random.pick(&["null", "1", "\"x\"", "[]", "{}"]);
    let member = [b"\"", name.as_slice(), b"\":", value.as_bytes(), b","].concat();
    insert(text, open, &member);
}

/// Makes it long or deep, at times beyond what is accepted.
fn long(random: &mut Random, text: &mut Vec<u8>, at: usize) {
    let piece = random.pick(&[" ", "[", "{\"a\":", "x"]);
    let times = random.pick(&[10, 130, 5000, 60_000]);
    insert(text, at, piece.repeat(times).as_bytes());
}
