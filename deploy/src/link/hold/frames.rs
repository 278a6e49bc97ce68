//! A stream cut into the messages of PostgreSQL's protocol, in whatever pieces it comes.

use super::Blind;

/// Of a message that comes in pieces no more than this is kept, bytes: enough for the text of any statement that matters
/// here, and no result or copied row takes more.
const KEPT: usize = 8 * 1024;
/// What no message is longer than; anything else is not this protocol.
const LONGEST: usize = 1 << 30;
/// A length counts itself.
const LENGTH: usize = 4;

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Frames {
    /// Messages begin with a byte that says their type. The first one of a client does not.
    typed: bool,
    header: [u8; 1 + LENGTH],
    /// Bytes of the header that have come.
    have: usize,
    /// Bytes of the body that have not.
    left: usize,
    /// The beginning of a body that comes in pieces.
    kept: Vec<u8>,
}

impl Frames {
    /// A client's direction, from its first byte.
    pub(super) fn starting() -> Self {
        Self {
            typed: false,
            ..Self::typed()
        }
    }

    /// A direction in which every message has a type.
    pub(super) fn typed() -> Self {
        Self {
            typed: true,
            header: [0; 1 + LENGTH],
            have: 0,
            left: 0,
            kept: Vec::new(),
        }
    }

    /// From the next message on all have a type.
    pub(super) fn started(&mut self) {
        self.typed = true;
    }

    /// The next message that is complete, and takes it off `bytes`: its type (0 for none) and its body, of which only the
    /// beginning is there when it is long and came in pieces. A body that is there as a whole is not copied.
    pub(super) fn next<'s, 'b: 's>(&'s mut self, bytes: &mut &'b [u8]) -> Result<Option<(u8, &'s [u8])>, Blind> {
        let header = LENGTH + usize::from(self.typed);
        if self.have < header {
            let count = bytes.len().min(header - self.have);
            self.header[self.have..self.have + count].copy_from_slice(&bytes[..count]);
            *bytes = &bytes[count..];
            self.have += count;
            if self.have < header {
                return Ok(None);
            }
            let length = self.header[header - LENGTH..header].try_into().unwrap_or_default();
            let length = u32::from_be_bytes(length) as usize;
            self.left = length
                .checked_sub(LENGTH)
                .filter(|left| *left < LONGEST)
                .ok_or(Blind("it does not speak PostgreSQL's protocol"))?;
            self.kept.clear();
        }
        let kind = if self.typed { self.header[0] } else { 0 };
        if self.kept.is_empty() && bytes.len() >= self.left {
            let (body, rest) = bytes.split_at(self.left);
            *bytes = rest;
            self.have = 0;
            return Ok(Some((kind, body)));
        }
        let (now, rest) = bytes.split_at(self.left.min(bytes.len()));
        let room = KEPT - self.kept.len();
        self.kept.extend(&now[..now.len().min(room)]);
        *bytes = rest;
        self.left -= now.len();
        if self.left > 0 {
            return Ok(None);
        }
        self.have = 0;
        Ok(Some((kind, &self.kept)))
    }
}
