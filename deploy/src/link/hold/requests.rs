//! What a client asks for.

use std::collections::HashSet;

use super::statement::locks;
use super::{Blind, Observer, Owed};

/// Codes of the untyped messages that come before the one that starts a session.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// The prepared statements and portals that lock a hot row, by name.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    statements: HashSet<Vec<u8>>,
    portals: HashSet<Vec<u8>>,
}

impl Observer {
    /// Bytes of the client, in order.
    ///
    /// # Errors
    /// The connection cannot be followed any more.
    pub(in crate::link) fn client(&mut self, mut bytes: &[u8], hot: &[String]) -> Result<(), Blind> {
        while let Some((kind, body)) = self.from_client.next(&mut bytes)? {
            match kind {
                0 => match body.first_chunk().map(|code| u32::from_be_bytes(*code)) {
                    Some(SSL_REQUEST | GSS_REQUEST) => self.asked_to_encrypt = true,
                    _ => self.from_client.started(),
                },
                b'Q' => self.owed.push_back(Owed::Query(locks(string(body).0, hot))),
                // A call of a function by its number, answered like a query.
                b'F' => self.owed.push_back(Owed::Query(false)),
                b'P' => {
                    let (name, rest) = string(body);
                    mark(&mut self.prepared.statements, name, locks(string(rest).0, hot));
                }
                b'B' => {
                    let (portal, rest) = string(body);
                    let locking = self.prepared.statements.contains(string(rest).0);
                    mark(&mut self.prepared.portals, portal, locking);
                }
                b'E' => {
                    let locking = self.prepared.portals.contains(string(body).0);
                    self.owed.push_back(Owed::Execution(locking));
                }
                b'C' => match body.split_first() {
                    Some((b'S', name)) => mark(&mut self.prepared.statements, string(name).0, false),
                    Some((_, name)) => mark(&mut self.prepared.portals, string(name).0, false),
                    None => {}
                },
                b'S' if !self.copying => self.owed.push_back(Owed::Sync),
                // CopyDone, CopyFail.
                b'c' | b'f' => self.copying = false,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Nothing is allocated for the many that lock nothing.
fn mark(names: &mut HashSet<Vec<u8>>, name: &[u8], locking: bool) {
    if !locking {
        names.remove(name);
    } else if !names.contains(name) {
        names.insert(name.to_vec());
    }
}

/// A string that ends in a zero byte, and what comes after it.
fn string(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}
