//! `logs`: what a service or server of a running stack wrote.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deploy::ProcessInfo;

use crate::commands::{DEFAULT_STACK, running};
use crate::failure::{Failure, Outcome};

/// More than this much of a log is never read to find its last lines.
const TAIL_BYTES: u64 = 4 << 20;
/// How often a followed log is looked at.
const FOLLOW: Duration = Duration::from_millis(200);

/// Arguments of `logs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A process of `ps` (tour-data-1), or a service (tour-data) for all its replicas
    service: String,
    /// Go on printing what is added, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Lines to print from the end of each log
    #[arg(long, default_value_t = 100)]
    tail: usize,
    /// Name of the stack
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
}

pub(crate) async fn run(args: Args) -> Outcome {
    let status = running(&args.name)?.status().await?;
    let chosen: Vec<&ProcessInfo> = status
        .processes
        .iter()
        .filter(|process| process.name == args.service || process.component == args.service)
        .collect();
    if chosen.is_empty() {
        let known: Vec<&str> = status.processes.iter().map(|process| process.name.as_str()).collect();
        return Err(Failure::Usage(format!(
            "stack `{}` has no `{}`; its processes are: {}",
            args.name,
            args.service,
            known.join(", ")
        )));
    }
    let several = chosen.len() > 1;
    let mut followed = Vec::with_capacity(chosen.len());
    for process in chosen {
        let (text, end) = tail(&process.log, args.tail).map_err(|error| unreadable(&process.log, &error))?;
        let label = if several {
            format!("{} | ", process.name)
        } else {
            String::new()
        };
        print(&label, &text)?;
        followed.push(Followed {
            path: process.log.clone(),
            position: end,
            label,
        });
    }
    if args.follow { follow(followed).await } else { Ok(()) }
}

/// Ends with Ctrl-C, or when nobody reads any more.
async fn follow(mut logs: Vec<Followed>) -> Outcome {
    loop {
        tokio::time::sleep(FOLLOW).await;
        for log in &mut logs {
            let text = log.added().map_err(|error| unreadable(&log.path, &error))?;
            print(&log.label, &text)?;
        }
    }
}

struct Followed {
    path: PathBuf,
    position: u64,
    label: String,
}

impl Followed {
    /// Whole lines that were added since the last look.
    fn added(&mut self) -> std::io::Result<String> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.position += whole as u64;
        Ok(String::from_utf8_lossy(&bytes[..whole]).into_owned())
    }
}

/// The last `lines` lines of a file, and its length.
fn tail(path: &Path, lines: usize) -> std::io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    let last = &all[all.len().saturating_sub(lines)..];
    Ok((last.iter().flat_map(|line| [*line, "\n"]).collect(), length))
}

fn print(label: &str, text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    for line in text.lines() {
        // A closed pipe (`logs … | head`) is the reader's way to say that it has enough.
        if writeln!(out, "{label}{line}").is_err() {
            std::process::exit(0);
        }
    }
    out.flush().map_err(|error| Failure::Gate(error.to_string()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Gate(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines_and_what_is_added_follows_once_it_is_a_whole_line() {
        let path = std::env::temp_dir().join(format!("rowlock-logs-{}", std::process::id()));
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        let (text, end) = tail(&path, 2).unwrap();
        assert_eq!((text.as_str(), end), ("b\nc\n", 6));

        let mut followed = Followed {
            path: path.clone(),
            position: end,
            label: String::new(),
        };
        std::fs::write(&path, "a\nb\nc\nd\nhal").unwrap();
        assert_eq!(followed.added().unwrap(), "d\n");
        std::fs::write(&path, "a\nb\nc\nd\nhalf\n").unwrap();
        assert_eq!(followed.added().unwrap(), "half\n");
        std::fs::remove_file(&path).unwrap();
    }
}
