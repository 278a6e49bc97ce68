//! The run's event stream with its two first readers: the file and the terminal.

use std::path::Path;

use crate::events::{Event, Phase, RunKey, Writer};
use crate::run::progress::Progress;

/// Where a run says what happens.
#[derive(Debug)]
pub(super) struct Stream {
    writer: Writer,
    progress: Progress,
}

impl Stream {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            writer: Writer::open(folder)?,
            progress: Progress::new(),
        })
    }

    /// Writes an event and shows it.
    pub(super) fn emit(&mut self, event: Event) -> anyhow::Result<()> {
        let stamped = self.writer.write(event)?;
        self.progress.see(&stamped.event);
        Ok(())
    }

    /// Shows an event that is in the stream already.
    pub(super) fn show(&mut self, event: &Event) {
        self.progress.see(event);
    }

    pub(super) fn phase(&mut self, key: &RunKey, phase: Phase) -> anyhow::Result<()> {
        self.emit(Event::Phase {
            key: key.clone(),
            phase,
        })
    }

    /// Shows what the stack is doing; of interest while one waits for it, and not part of the run.
    pub(super) fn note(&mut self, line: &str) {
        self.progress.note(line);
    }
}
