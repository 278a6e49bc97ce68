//! The line protocol on stdin and stdout.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::round_trip;

/// A command line this long is a mistake at the other end.
const LONGEST_LINE: usize = 4096;

/// What the other end of stdin asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Rtt(Duration),
    Cut,
    Mend,
    Stats,
    Holds,
}

/// Reads commands as they come. Not `std::io::Stdin`, whose buffer hides what it has read from epoll.
pub(super) struct Commands {
    input: File,
    partial: Vec<u8>,
}

impl Commands {
    pub(super) fn from_stdin() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?.into();
        Ok(Self {
            input,
            partial: Vec::new(),
        })
    }

    /// Reads once what is there: complete lines as commands or as what is wrong with them; `None` at the end of input.
    pub(super) fn read(&mut self) -> io::Result<Option<Vec<Result<Command, String>>>> {
        let mut buffer = [0; 1024];
        let count = self.input.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        self.partial.extend(&buffer[..count]);
        let complete = self
            .partial
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.partial.drain(..complete).collect();
        if self.partial.len() > LONGEST_LINE {
            return Err(io::Error::other(format!(
                "a command line is longer than {LONGEST_LINE} bytes"
            )));
        }
        Ok(Some(String::from_utf8_lossy(&lines).lines().map(parse).collect()))
    }
}

impl AsFd for Commands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

/// Writes one line; an error means that nobody reads any more.
pub(super) fn answer(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()
}

/// The answer to a line that is no command.
pub(super) fn refusal(reason: &str) -> Value {
    json!({ "error": reason })
}

fn parse(line: &str) -> Result<Command, String> {
    match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        ["rtt", micros] => round_trip(micros).map(Command::Rtt),
        ["cut"] => Ok(Command::Cut),
        ["mend"] => Ok(Command::Mend),
        ["stats"] => Ok(Command::Stats),
        ["holds"] => Ok(Command::Holds),
        _ => Err(format!(
            "`{line}` is no command; there are `rtt MICROSECONDS`, `cut`, `mend`, `stats` and `holds`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_and_others_named() {
        assert_eq!(parse("rtt 500"), Ok(Command::Rtt(Duration::from_micros(500))));
        assert_eq!(parse(" stats "), Ok(Command::Stats));
        assert_eq!((parse("cut"), parse("mend")), (Ok(Command::Cut), Ok(Command::Mend)));
        assert!(parse("rtt").unwrap_err().contains("`rtt`"));
        assert!(parse("rtt -1").unwrap_err().contains("`-1`"));
    }
}
