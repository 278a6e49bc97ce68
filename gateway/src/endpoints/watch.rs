//! Notices that the endpoints file was replaced.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use chassis::service::Drain;
use tokio::time::MissedTickBehavior;

use super::Endpoints;

/// Polling, not inotify: one stat is cheap, works on every file system, and survives that the file is replaced by a
/// rename. A change is seen within two polls.
const POLL: Duration = Duration::from_millis(100);

/// Which file this is: a rename brings another inode, writing in place another time or length.
#[derive(PartialEq, Eq)]
struct Identity {
    inode: u64,
    modified_ns: (i64, i64),
    length: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
        }
    }
}

/// Runs until the service drains.
pub(crate) async fn watch(endpoints: Arc<Endpoints>, drain: Drain) -> anyhow::Result<()> {
    // Nothing is known of the file that was read at start, so the first poll reads it once more: it may have been
    // replaced in between.
    let mut seen = None;
    let mut poll = tokio::time::interval(POLL);
    poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = poll.tick() => {}
            () = drain.cancelled() => return Ok(()),
        }
        // None while the file is away; that too is a change, said once.
        let now = tokio::fs::metadata(endpoints.path())
            .await
            .ok()
            .map(|metadata| Identity::of(&metadata));
        if seen.as_ref() == Some(&now) {
            continue;
        }
        seen = Some(now);
        let reader = Arc::clone(&endpoints);
        if let Err(problem) = tokio::task::spawn_blocking(move || reader.reload()).await? {
            tracing::error!(file = %endpoints.path().display(), %problem, "endpoints file not taken; the last good one stays in force");
        }
    }
}
