//! What the server answers.

use std::time::Instant;

use super::{Blind, Holds, Observer, Owed};

impl Observer {
    /// Bytes of the server, in order; all of them came at `at`.
    ///
    /// # Errors
    /// The connection cannot be followed any more.
    pub(in crate::link) fn server(&mut self, mut bytes: &[u8], at: Instant, holds: &mut Holds) -> Result<(), Blind> {
        if self.asked_to_encrypt
            && let Some((answer, rest)) = bytes.split_first()
        {
            if *answer != b'N' {
                return Err(Blind("it is encrypted"));
            }
            self.asked_to_encrypt = false;
            bytes = rest;
        }
        while let Some((kind, body)) = self.from_server.next(&mut bytes)? {
            let body = body.strip_suffix(&[0]).unwrap_or(body);
            match kind {
                // CommandComplete, with what was done: `UPDATE 1`.
                b'C' => {
                    let locking = match self.owed.front() {
                        Some(Owed::Execution(locking)) => {
                            let locking = *locking;
                            self.owed.pop_front();
                            locking
                        }
                        Some(Owed::Query(locking)) => *locking,
                        Some(Owed::Sync) | None => false,
                    };
                    if matches!(body, b"COMMIT" | b"ROLLBACK") {
                        self.ended = Some(at);
                    } else if locking && touched_rows(body) {
                        self.locked.get_or_insert(at);
                    }
                }
                // PortalSuspended: some rows of more to come. EmptyQueryResponse: there was no statement.
                b's' | b'I' => {
                    if let Some(Owed::Execution(locking)) = self.owed.front() {
                        if *locking && kind == b's' {
                            self.locked.get_or_insert(at);
                        }
                        self.owed.pop_front();
                    }
                }
                // CopyInResponse. A driver that did not expect it has sent a Sync with the statement.
                b'G' => {
                    self.copying = true;
                    while matches!(self.owed.get(1), Some(Owed::Sync)) {
                        self.owed.remove(1);
                    }
                }
                b'Z' => {
                    let idle = body.first() == Some(&b'I');
                    self.ready(idle, holds);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// ReadyForQuery. What was still owed before it fell to an error.
    fn ready(&mut self, idle: bool, holds: &mut Holds) {
        while let Some(Owed::Execution(_)) = self.owed.pop_front() {}
        let ended = self.ended.take();
        if !idle {
            // In a transaction, also after a ROLLBACK TO a savepoint: the lock is still held.
            return;
        }
        // Without COMMIT or ROLLBACK there was no transaction, and the lock was gone before its reply was sent.
        if let (Some(locked), Some(ended)) = (self.locked.take(), ended) {
            holds.add(ended.saturating_duration_since(locked));
        }
    }
}

/// A statement that met no row holds none. Only an upsert locks the row it conflicts with before it looks whether there is
/// anything to change, and says `INSERT 0 0` when there is not.
fn touched_rows(tag: &[u8]) -> bool {
    tag.starts_with(b"INSERT ") || !tag.ends_with(b" 0")
}
