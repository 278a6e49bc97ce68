//! Answers of HTTP/1.1 as they come off the wire (RFC 9112): the head, and where the body ends.

use std::mem::MaybeUninit;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};

/// The most header fields of an answer.
const FIELDS: usize = 100;

/// What is wrong with an answer, in words.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed(pub(super) String);

/// The head of an answer.
#[derive(Debug, PartialEq)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// In bytes.
    pub(super) length: usize,
    pub(super) body: Body,
    /// The connection can carry another request when the body has ended.
    pub(super) keep_alive: bool,
}

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Body {
    /// So many bytes; none when it has ended.
    Sized(u64),
    Chunked(Chunk),
    /// Everything until the connection ends.
    UntilClose,
}

/// What comes next in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Chunk {
    Size,
    Data(u64),
    /// The line's end behind the data.
    End,
    Trailer,
}

/// The next so many bytes.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// Of the body.
    Data(usize),
    /// Around it.
    Framing(usize),
}

impl Head {
    /// The head that `bytes` begin with, if all of it is there. Its fields go to `fields` if `wanted` says so of its status;
    /// they are not copied otherwise. `only` says that the request asked for nothing but the head.
    pub(super) fn parse(
        bytes: &[u8],
        only: bool,
        fields: &mut HeaderMap,
        wanted: impl FnOnce(StatusCode) -> bool,
    ) -> Result<Option<Self>, Malformed> {
        let mut room = [const { MaybeUninit::uninit() }; FIELDS];
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut room);
        let length = match parsed.map_err(|error| malformed(&error))? {
            Status::Partial => return Ok(None),
            Status::Complete(length) => length,
        };
        let code = response.code.unwrap_or_default();
        let status = StatusCode::from_u16(code).map_err(|_| Malformed(format!("{code} is no status")))?;
        let framing = Framing::of(response.headers)?;
        if wanted(status) {
            for field in response.headers.iter() {
                let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|error| malformed(&error))?;
                let value = HeaderValue::from_bytes(field.value).map_err(|error| malformed(&error))?;
                fields.append(name, value);
            }
        }
        let http_1_0 = response.version == Some(0);
        if http_1_0 && framing.chunked.is_some() {
            return Err(Malformed("an answer of HTTP/1.0 has no transfer-encoding".into()));
        }
        let none = only || status.is_informational() || matches!(code, 204 | 304);
        let body = match (framing.chunked, framing.length) {
            _ if none => Body::Sized(0),
            (Some(true), _) => Body::Chunked(Chunk::Size),
            (None, Some(length)) => Body::Sized(length),
            _ => Body::UntilClose,
        };
        // Who says both may be somebody who was made to (RFC 9112, 6.3): nothing after it is to be trusted.
        let doubtful = framing.chunked.is_some() && framing.length.is_some();
        let stays = framing.keep_alive.unwrap_or(!http_1_0);
        Ok(Some(Self {
            status,
            length,
            body,
            keep_alive: stays && !doubtful && body != Body::UntilClose,
        }))
    }
}

/// What the fields of a head say about the body's end and what follows it.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    /// Whether the last coding is `chunked`, if there is any.
    chunked: Option<bool>,
    keep_alive: Option<bool>,
}

impl Framing {
    fn of(fields: &[Header<'_>]) -> Result<Self, Malformed> {
        let mut framing = Self::default();
        for field in fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            let mut members = field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if is("content-length") {
                for member in members {
                    let length = number(member).filter(|length| framing.length.is_none_or(|before| before == *length));
                    framing.length = Some(length.ok_or_else(|| {
                        let value = String::from_utf8_lossy(field.value);
                        Malformed(format!(
                            "`content-length: {value}` is no length, or another one than before"
                        ))
                    })?);
                }
            } else if is("transfer-encoding") {
                framing.chunked = members.next_back().map(|last| last.eq_ignore_ascii_case(b"chunked"));
            } else if is("connection") {
                for member in members {
                    if member.eq_ignore_ascii_case(b"close") {
                        framing.keep_alive = Some(false);
                    } else if member.eq_ignore_ascii_case(b"keep-alive") {
                        framing.keep_alive = framing.keep_alive.or(Some(true));
                    }
                }
            }
        }
        Ok(framing)
    }
}

impl Body {
    pub(super) fn has_ended(self) -> bool {
        self == Self::Sized(0)
    }

    /// The piece that `bytes` begin with; `None` when more of them are needed to tell.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Result<Option<Piece>, Malformed> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let chunk = match self {
            Self::UntilClose => return Ok(Some(Piece::Data(bytes.len()))),
            Self::Sized(left) => return Ok(Some(Piece::Data(take(left, bytes)))),
            Self::Chunked(chunk) => chunk,
        };
        Ok(match chunk {
            // No digit at all would pass for a size of 0, which ends the body.
            Chunk::Size if !bytes[0].is_ascii_hexdigit() => return Err(no_size()),
            Chunk::Size => match httparse::parse_chunk_size(bytes) {
                Ok(Status::Partial) => None,
                Ok(Status::Complete((length, size))) => {
                    *chunk = if size == 0 { Chunk::Trailer } else { Chunk::Data(size) };
                    Some(Piece::Framing(length))
                }
                Err(_) => return Err(no_size()),
            },
            Chunk::Data(left) => {
                let taken = take(left, bytes);
                if *left == 0 {
                    *chunk = Chunk::End;
                }
                Some(Piece::Data(taken))
            }
            Chunk::End => match bytes {
                [b'\r', b'\n', ..] => {
                    *chunk = Chunk::Size;
                    Some(Piece::Framing(2))
                }
                [b'\r'] => None,
                _ => return Err(Malformed("a chunk is longer than its size".into())),
            },
            Chunk::Trailer => {
                let mut fields = [EMPTY_HEADER; FIELDS];
                match httparse::parse_headers(bytes, &mut fields).map_err(|error| malformed(&error))? {
                    Status::Partial => None,
                    Status::Complete((length, _)) => {
                        *self = Self::Sized(0);
                        Some(Piece::Framing(length))
                    }
                }
            }
        })
    }
}

/// As many of the bytes as are `left`.
fn take(left: &mut u64, bytes: &[u8]) -> usize {
    let taken = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
    *left -= taken as u64;
    taken
}

/// Digits alone: `parse` by itself would take a sign.
fn number(digits: &[u8]) -> Option<u64> {
    let plain = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|_| plain)
}

fn no_size() -> Malformed {
    Malformed("a chunk begins with no size".into())
}

fn malformed(error: &dyn std::error::Error) -> Malformed {
    Malformed(format!("the answer is not HTTP/1.1: {error}"))
}

#[cfg(test)]
mod tests;
