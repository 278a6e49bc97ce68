//! Everything the load was told had succeeded, in a file: memory stays flat however long the load runs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use tokio::sync::watch;
use uuid::Uuid;

/// One request that was answered with success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) tour_id: Uuid,
    /// Rows that the answer says were written.
    pub(crate) rows: u32,
    pub(crate) idempotency_key: Option<String>,
    /// Key of the tenant whose configuration it wrote.
    pub(crate) tenant: String,
    /// Digest ([`crate::digest::short`]) of the `tenantInfo` that it wrote; `None` where that is null.
    pub(crate) info: Option<String>,
    /// Wall clock, milliseconds since the Unix epoch.
    pub(crate) sent_at_ms: u64,
    pub(crate) acked_at_ms: u64,
}

/// An acknowledged write of a tenant's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    /// Milliseconds since the Unix epoch.
    pub(crate) sent_ms: u64,
    pub(crate) acked_ms: u64,
    /// Digest of the `tenantInfo`; `None` where that is null.
    pub(crate) info: Option<String>,
}

/// The file being written; lines of CSV in the form that `COPY` reads.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    // Held for the length of a buffered write, never across an await.
    lines: Mutex<Lines>,
    /// How many there are, for whoever waits for the next one.
    count: watch::Sender<u64>,
}

#[derive(Debug)]
struct Lines {
    file: BufWriter<File>,
    count: u64,
    last: Option<Write>,
    error: Option<std::io::Error>,
}

/// The file when the load is over.
#[derive(Debug)]
pub(crate) struct Closed {
    path: PathBuf,
    count: u64,
}

impl Ledger {
    /// Creates or empties the file.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let lines = Lines {
            file: BufWriter::new(file),
            count: 0,
            last: None,
            error: None,
        };
        Ok(Self {
            path: path.to_owned(),
            lines: Mutex::new(lines),
            count: watch::Sender::new(0),
        })
    }

    /// The number of lines, as it grows.
    pub(crate) fn growth(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// What was recorded last.
    pub(crate) fn last(&self) -> Option<Write> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.last.clone()
    }

    /// Adds a line; a write that fails is reported by [`Ledger::close`], so that the load need not look.
    pub(crate) fn record(&self, acknowledged: &Acknowledged) {
        let Acknowledged {
            tour_id,
            rows,
            idempotency_key,
            tenant,
            info,
            sent_at_ms,
            acked_at_ms,
        } = acknowledged;
        let key = idempotency_key
            .as_deref()
            .map(|key| format!("\"{}\"", key.replace('"', "\"\"")))
            .unwrap_or_default();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.count += 1;
        lines.last = Some(Write {
            sent_ms: *sent_at_ms,
            acked_ms: *acked_at_ms,
            info: info.clone(),
        });
        let info = info.as_deref().unwrap_or_default();
        if let Err(error) = writeln!(
            lines.file,
            "{tour_id},{sent_at_ms},{acked_at_ms},{rows},{tenant},{info},{key}"
        ) {
            lines.error.get_or_insert(error);
        }
        self.count.send_replace(lines.count);
    }

    /// Ends the writing.
    ///
    /// # Errors
    /// A line could not be written: the audit would look at less than was acknowledged.
    pub(crate) fn close(&self) -> anyhow::Result<Closed> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = lines.error.take().map_or_else(|| lines.file.flush(), Err);
        failed.with_context(|| format!("cannot write {}: is the disk full?", self.path.display()))?;
        Ok(Closed {
            path: self.path.clone(),
            count: lines.count,
        })
    }
}

impl Closed {
    /// Requests that were acknowledged.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The file, to be copied into the database.
    pub(crate) fn open(&self) -> anyhow::Result<File> {
        File::open(&self.path).with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Ids of the tours.
    pub(crate) fn tours(&self) -> anyhow::Result<HashSet<Uuid>> {
        let mut tours = HashSet::new();
        for line in BufReader::new(self.open()?).lines() {
            let line = line?;
            let id = line.split(',').next().and_then(|id| id.parse().ok());
            let wrong = || format!("{}: not a line of the ledger: {line}", self.path.display());
            tours.insert(id.with_context(wrong)?);
        }
        Ok(tours)
    }

    /// The writes of each tenant's configuration, by its key; without those of requests that made a tour of `lost`.
    pub(crate) fn writes(&self, lost: &BTreeSet<Uuid>) -> anyhow::Result<BTreeMap<String, Vec<Write>>> {
        let mut writes: BTreeMap<String, Vec<Write>> = BTreeMap::new();
        for line in BufReader::new(self.open()?).lines() {
            let line = line?;
            let fields: Vec<&str> = line.splitn(7, ',').collect();
            let [tour_id, sent, acked, _, whose, info, _] = fields[..] else {
                anyhow::bail!("{}: not a line of the ledger: {line}", self.path.display());
            };
            if tour_id.parse().is_ok_and(|id: Uuid| lost.contains(&id)) {
                continue;
            }
            let (Ok(sent_ms), Ok(acked_ms)) = (sent.parse(), acked.parse()) else {
                anyhow::bail!("{}: not a line of the ledger: {line}", self.path.display());
            };
            writes.entry(whose.to_owned()).or_default().push(Write {
                sent_ms,
                acked_ms,
                info: (!info.is_empty()).then(|| info.to_owned()),
            });
        }
        Ok(writes)
    }

    /// Deletes the file.
    pub(crate) fn remove(self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_read_back_and_keys_with_quotes_stay_one_field() {
        let path = std::env::temp_dir().join(format!("rowlock-ledger-{}.csv", std::process::id()));
        let ledger = Ledger::create(&path).unwrap();
        let first = Acknowledged {
            tour_id: Uuid::from_u128(7),
            rows: 87,
            idempotency_key: Some("a\"b,c".into()),
            tenant: "BEHNGT".into(),
            info: Some("d1".into()),
            sent_at_ms: 1,
            acked_at_ms: 3,
        };
        let second = Acknowledged {
            idempotency_key: None,
            info: None,
            sent_at_ms: 2,
            acked_at_ms: 4,
            ..first.clone()
        };
        let of_another = Acknowledged {
            tenant: "NORDEX".into(),
            ..second.clone()
        };
        for each in [&first, &second, &of_another] {
            ledger.record(each);
        }
        assert_eq!(ledger.last().map(|write| (write.acked_ms, write.info)), Some((4, None)));
        let closed = ledger.close().unwrap();
        assert_eq!(closed.count(), 3);
        assert_eq!(closed.tours().unwrap(), HashSet::from([first.tour_id]));
        let write = |sent_ms, acked_ms, info: Option<&str>| Write {
            sent_ms,
            acked_ms,
            info: info.map(str::to_owned),
        };
        let writes = closed.writes(&BTreeSet::new()).unwrap();
        assert_eq!(writes["BEHNGT"], [write(1, 3, Some("d1")), write(2, 4, None)]);
        assert_eq!(writes["NORDEX"], [write(2, 4, None)]);
        assert!(closed.writes(&BTreeSet::from([first.tour_id])).unwrap().is_empty());
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        assert!(
            lines.next().unwrap().ends_with(",1,3,87,BEHNGT,d1,\"a\"\"b,c\""),
            "{text}"
        );
        assert!(lines.next().unwrap().ends_with(",2,4,87,BEHNGT,,"), "{text}");
        closed.remove().unwrap();
        assert!(!path.exists());
    }
}
