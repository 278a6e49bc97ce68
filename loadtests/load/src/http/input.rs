//! The bytes of an answer between socket and parser.

use super::answer::Malformed;

/// What is read at once.
const FIRST: usize = 16 << 10;
/// The largest head of an answer; of a body only what was read last is here.
const MOST: usize = 256 << 10;

/// A buffer that is filled at its end and used up from its start.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Where what is not used yet begins and ends.
    from: usize,
    to: usize,
}

impl Input {
    pub(super) fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    pub(super) fn unused(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    pub(super) fn used(&mut self, length: usize) {
        self.from += length;
    }

    /// Room for more, at least a byte of it.
    pub(super) fn room(&mut self) -> Result<&mut [u8], Malformed> {
        if self.from == self.to {
            self.clear();
        }
        if self.to == self.bytes.len() {
            if self.from > 0 {
                self.bytes.copy_within(self.from.., 0);
                (self.from, self.to) = (0, self.to - self.from);
            } else if self.to < MOST {
                self.bytes.resize((2 * self.to).max(FIRST), 0);
            } else {
                return Err(Malformed(format!(
                    "the answer's head, or a line in its body, is longer than {} KiB",
                    MOST >> 10
                )));
            }
        }
        Ok(&mut self.bytes[self.to..])
    }

    /// So much of the room was filled.
    pub(super) fn filled(&mut self, length: usize) {
        self.to += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(input: &mut Input, bytes: &[u8]) {
        for byte in bytes {
            input.room().unwrap()[0] = *byte;
            input.filled(1);
        }
    }

    #[test]
    fn what_is_not_used_stays_in_its_order_while_room_is_made() {
        let mut input = Input::default();
        let bytes: Vec<u8> = (0..=250).cycle().take(3 * FIRST).collect();
        for (at, piece) in bytes.chunks(FIRST / 2).enumerate() {
            fill(&mut input, piece);
            input.used(FIRST / 2 - 1);
            let expected = &bytes[(at + 1) * (FIRST / 2 - 1)..(at + 1) * FIRST / 2];
            assert_eq!(input.unused(), expected, "{at}");
        }
        assert_eq!(input.bytes.len(), FIRST, "what was used makes room for what comes");
    }

    #[test]
    fn it_grows_with_what_is_not_used_up_to_a_bound() {
        let mut input = Input::default();
        while input.to < MOST {
            let length = input.room().unwrap().len();
            input.filled(length);
        }
        assert!(input.room().unwrap_err().0.contains("256 KiB"));
        input.used(1);
        assert_eq!(input.room().unwrap().len(), 1);
    }
}
