//! The links of a stack: each a child process that delays what passes, tuned until the measured round trip is the one
//! that was asked for.

mod holds;
mod measure;

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;

use holds::Taken;
pub use holds::{HoldMeter, Holds};
pub(crate) use measure::measure;

use crate::error::DeployError;
use crate::link::Upstream;
use crate::ports::local;
use crate::process::{Kind, Launch, Process, Spawner, Stop, sibling};
use crate::topology::LinkName;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A measured round trip this near to the asked one, relative to it, is taken.
const CLOSE_ENOUGH: f64 = 0.02;
/// Figures over a link that is farther off are void.
const OFF_BY: f64 = 0.1;
/// The most that the way through a link and the server's answer cost by themselves, as a time and as a share of the
/// round trip asked for, whichever is more: a delay is never reduced by more than this.
const MOST_BASE: Duration = Duration::from_micros(200);
const MOST_BASE_SHARE: f64 = 0.3;
const TRIES: u32 = 12;
/// This many measurements in a row must agree.
const CONFIRMED: u32 = 2;

/// A running link.
#[derive(Debug)]
pub(crate) struct Link {
    name: LinkName,
    port: u16,
    upstream: Upstream,
    process: Process,
    pipe: Mutex<Pipe>,
    /// What it adds to a round trip at present.
    added: std::sync::Mutex<Duration>,
    /// What it was last tuned for.
    aim: std::sync::Mutex<Duration>,
}

#[derive(Debug)]
struct Pipe {
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// What a link counts since it was started.
#[derive(Debug, Deserialize)]
struct Stats {
    round_trips: u64,
}

/// A line of a link; see [`crate::link`].
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    Stats(Stats),
    Holds { holds: Taken },
    Error { error: String },
    Other {},
}

impl Link {
    /// Starts a link that adds no delay yet, and times for how long rows of the relations in `watch` are locked.
    pub(crate) fn start(
        name: LinkName,
        port: u16,
        upstream: Upstream,
        watch: &[&str],
        cwd: &Path,
        spawner: &Spawner,
    ) -> Result<Self, DeployError> {
        let (listen, to) = (local(port).to_string(), upstream.to_string());
        let arguments = ["--listen", &listen, "--upstream", &to, "--rtt-us", "0"];
        let watch = watch.iter().flat_map(|relation| ["--watch", *relation]);
        let launch = Launch {
            name: format!("link-{name}"),
            component: "link".to_owned(),
            kind: Kind::Tool,
            program: sibling("rowlock-link")?,
            args: arguments.into_iter().chain(watch).map(Into::into).collect(),
            env: Vec::new(),
            cwd: cwd.to_owned(),
            user: None,
            group: None,
            ports: vec![port],
            stop: Stop::by(Signal::SIGTERM, Duration::from_secs(2)),
        };
        let (process, commands, answers) = spawner.spawn_piped(&launch)?;
        let pipe = Mutex::new(Pipe {
            commands,
            answers: BufReader::new(answers).lines(),
        });
        Ok(Self {
            name,
            port,
            upstream,
            process,
            pipe,
            added: std::sync::Mutex::default(),
            aim: std::sync::Mutex::default(),
        })
    }

    /// Which one it is.
    pub(crate) fn name(&self) -> LinkName {
        self.name
    }

    /// Where it leads.
    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sets the delay it adds to a round trip.
    pub(crate) async fn set(&self, added: Duration) -> Result<(), DeployError> {
        self.ask(&format!("rtt {}\nstats\n", added.as_micros())).await?;
        *self.added.lock().unwrap_or_else(PoisonError::into_inner) = added;
        Ok(())
    }

    /// The delay it adds to a round trip.
    pub(crate) fn added(&self) -> Duration {
        *self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The round trip that it was last tuned for.
    pub(crate) fn aim(&self) -> Duration {
        *self.aim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets every connection over it and refuses new ones.
    pub(crate) async fn cut(&self) -> Result<(), DeployError> {
        self.ask("cut\nstats\n").await.map(|_| ())
    }

    /// Takes connections again.
    pub(crate) async fn mend(&self) -> Result<(), DeployError> {
        self.ask("mend\nstats\n").await.map(|_| ())
    }

    /// Round trips that have passed since it was started.
    pub(crate) async fn round_trips(&self) -> Result<u64, DeployError> {
        self.ask("stats\n").await.map(|stats| stats.round_trips)
    }

    /// The times for which rows of the watched relations were locked since the last call.
    pub(crate) async fn holds(&self) -> Result<Holds, DeployError> {
        let taken = |answer| match answer {
            Answer::Holds { holds } => Some(holds),
            _ => None,
        };
        self.talk("holds\n", taken).await.map(Holds::from)
    }

    /// Ends it; connections over it break.
    pub(crate) async fn stop(&self) -> Result<(), DeployError> {
        self.process.stop().await
    }

    /// Tunes the added delay until a round trip to the server behind `url` takes `asked` as a client measures it: the
    /// way through the link and the server's answer cost time themselves. Gives a line for the reader.
    pub(crate) async fn calibrate(&self, asked: Duration, url: &str) -> Result<String, DeployError> {
        let name = self.name;
        *self.aim.lock().unwrap_or_else(PoisonError::into_inner) = asked;
        self.set(Duration::ZERO).await?;
        let base = measure(name, url).await?;
        // A busy moment inflates what is measured; subtracting it would leave no distance once the moment is over.
        let least = asked.saturating_sub(MOST_BASE.max(asked.mul_f64(MOST_BASE_SHARE)));
        let mut added = asked.saturating_sub(base).max(least);
        let mut measured = base;
        let mut close = 0;
        for _ in 0..TRIES {
            self.set(added).await?;
            measured = measure(name, url).await?;
            if off(measured, asked) <= CLOSE_ENOUGH {
                // Once may be chance: noise can hide a delay that is too short.
                close += 1;
                if close == CONFIRMED {
                    break;
                }
            } else {
                close = 0;
                added = (added + asked).saturating_sub(measured).max(least);
            }
        }
        let warning = if off(measured, asked) > OFF_BY {
            "; that is too far off for figures over this link"
        } else {
            ""
        };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (asked, measured, base) = (ms(asked), ms(measured), ms(base));
        Ok(format!(
            "round trip on {name}: {measured:.3} ms, asked {asked:.3} ms, {base:.3} ms without delay{warning}"
        ))
    }

    /// Writes commands that end in `stats` and reads its answer.
    async fn ask(&self, commands: &str) -> Result<Stats, DeployError> {
        let stats = |answer| match answer {
            Answer::Stats(stats) => Some(stats),
            _ => None,
        };
        self.talk(commands, stats).await
    }

    /// Writes commands and reads answers until one of them is `wanted`.
    async fn talk<T>(&self, commands: &str, wanted: impl Fn(Answer) -> Option<T>) -> Result<T, DeployError> {
        let mut pipe = self.pipe.lock().await;
        let talk = async {
            pipe.commands.write_all(commands.as_bytes()).await?;
            loop {
                let line = pipe
                    .answers
                    .next_line()
                    .await?
                    .ok_or(std::io::ErrorKind::UnexpectedEof)?;
                match serde_json::from_str(&line) {
                    Ok(Answer::Error { error }) => return Err(std::io::Error::other(error)),
                    // Others are `listening` at the start and the confirmation of a new delay.
                    Ok(answer) => {
                        if let Some(found) = wanted(answer) {
                            return Ok(found);
                        }
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let failed = match timeout(ANSWER_WITHIN, talk).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => format!("does not answer: {error}"),
            Err(_) => format!("does not answer within {} s", ANSWER_WITHIN.as_secs()),
        };
        let info = self.process.info();
        Err(DeployError::start(&info.name, failed, Some(&info.log)))
    }
}

/// How far off, relative to what was asked.
fn off(measured: Duration, asked: Duration) -> f64 {
    (measured.as_secs_f64() / asked.as_secs_f64() - 1.0).abs()
}
