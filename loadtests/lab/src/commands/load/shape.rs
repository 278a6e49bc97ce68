//! The shape of a load on the command line.

use std::time::Duration;

use load::{AbortBelow, Measure, Shape, Spacing, Threshold};

use crate::duration;
use crate::failure::{Failure, Outcome};

/// What a threshold looks back at when it does not say.
const THRESHOLD_OVER: Duration = Duration::from_secs(10);
/// How long a rate may be missed when nothing is said.
const ABORT_OVER: Duration = Duration::from_secs(5);
/// Users when neither users nor a rate are asked for.
const USERS: usize = 10;

/// Arguments that say who decides when a request is sent, how many there are, and for how long.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Closed loop: virtual users, each with a connection of its own [default: 10]; 0 begins with the first --stage
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    users: Option<usize>,
    /// Open loop: requests a second, sent when their time has come; 0 begins with the first --stage
    #[arg(long, value_name = "PER SECOND")]
    rate: Option<f64>,
    /// Measured part, e.g. 20s
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    duration: Duration,
    /// Load before the measured part
    #[arg(long, default_value = "0s", value_parser = duration::parse)]
    warm_up: Duration,
    /// What comes after: LEVEL:DURATION[:WARM-UP] holds a level (users, or requests a second), ramp:LEVEL:DURATION goes
    /// there evenly and is in no figure (repeatable)
    #[arg(long = "stage", value_name = "STAGE", value_parser = stage)]
    stages: Vec<Stage>,
    /// Closed loop: pause of a user between two requests
    #[arg(long, value_parser = duration::parse, conflicts_with = "rate")]
    think: Option<Duration>,
    /// Open loop: distances between sends, all alike or those of a Poisson process
    #[arg(long, requires = "rate")]
    arrivals: Option<Arrivals>,
    /// Determines the distances of a Poisson process and the order of a mix; without one it is drawn and shown
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Open loop: requests that may be under way at once [default: 256]; one more waits and is counted as late
    #[arg(long, value_name = "N", requires = "rate")]
    in_flight: Option<usize>,
    /// Open loop: late requests that may wait [default: 10000]; one more is dropped and counted as that
    #[arg(long, value_name = "N", requires = "rate")]
    queue: Option<usize>,
    /// Stop after this many requests
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// End the load, with exit status 1, when this does not hold: errors=5%, p95=500ms, p99.9=2s; over the last 10 s unless
    /// it says, as in p95=500ms/30s, and never over more than the load lasts after its first warm-up (repeatable)
    #[arg(long = "threshold", value_name = "BOUND", value_parser = threshold)]
    thresholds: Vec<Threshold>,
    /// Open loop: end the load, with exit status 1, when less than this share of the rate is sent for 5 s, or for as long as
    /// it says: 90%, 95%/10s
    #[arg(long, value_name = "SHARE", requires = "rate", value_parser = abort_below)]
    abort_below: Option<AbortBelow>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Arrivals {
    Constant,
    Poisson,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Plateau {
        level: f64,
        duration: Duration,
        warm_up: Duration,
    },
    Ramp {
        to: f64,
        duration: Duration,
    },
}

impl Args {
    pub(super) fn shape(&self, seed: u64) -> Outcome<Shape> {
        let (level, mut shape) = match self.rate {
            Some(rate) => (rate, Shape::open(rate)),
            None => {
                let users = self.users.unwrap_or(USERS);
                (users as f64, Shape::closed(users))
            }
        };
        if level != 0.0 {
            shape = shape.warm_up(self.warm_up).duration(self.duration);
        } else if self.stages.is_empty() {
            return Err(Failure::Usage(
                "a load that begins with nothing needs a --stage, such as ramp:50:30s or 50:20s".to_owned(),
            ));
        }
        for stage in &self.stages {
            shape = match *stage {
                Stage::Plateau {
                    level,
                    duration,
                    warm_up,
                } => shape.plateau(level).warm_up(warm_up).duration(duration),
                Stage::Ramp { to, duration } => shape.ramp(to, duration),
            };
        }
        if let Some(think) = self.think {
            shape = shape.think(think);
        }
        if let Some(arrivals) = self.arrivals {
            shape = shape.spacing(match arrivals {
                Arrivals::Constant => Spacing::Constant,
                Arrivals::Poisson => Spacing::Poisson { seed },
            });
        }
        if let Some(requests) = self.in_flight {
            shape = shape.in_flight_max(requests);
        }
        if let Some(requests) = self.queue {
            shape = shape.queue_max(requests);
        }
        if let Some(requests) = self.requests {
            shape = shape.max_iterations(requests);
        }
        for threshold in &self.thresholds {
            shape = shape.threshold(threshold.clone());
        }
        if let Some(rule) = &self.abort_below {
            shape = shape.abort_below(rule.clone());
        }
        Ok(shape)
    }

    /// What a level is a number of.
    pub(super) fn unit(&self) -> &'static str {
        if self.rate.is_some() { "/s" } else { " users" }
    }
}

fn stage(text: &str) -> Result<Stage, String> {
    let wrong = || format!("`{text}` is no stage; write 50:20s, 50:20s:5s (with a warm-up) or ramp:50:30s");
    let level = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["ramp", to, length] => Ok(Stage::Ramp {
            to: level(to)?,
            duration: duration::parse(length)?,
        }),
        [held, length] => Ok(Stage::Plateau {
            level: level(held)?,
            duration: duration::parse(length)?,
            warm_up: Duration::ZERO,
        }),
        [held, length, before] => Ok(Stage::Plateau {
            level: level(held)?,
            duration: duration::parse(length)?,
            warm_up: duration::parse(before)?,
        }),
        _ => Err(wrong()),
    }
}

fn threshold(text: &str) -> Result<Threshold, String> {
    let wrong = || format!("`{text}` is no threshold; write errors=5%, p95=500ms or p95=500ms/30s");
    let (bound, over) = stretch(text, THRESHOLD_OVER)?;
    let (measure, at_most) = bound.split_once('=').ok_or_else(wrong)?;
    let (measure, at_most) = match measure.strip_prefix('p') {
        _ if measure == "errors" => (Measure::ErrorShare, share(at_most)?),
        Some(percent) => (
            Measure::Latency(percent.parse::<f64>().map_err(|_| wrong())? / 100.0),
            duration::parse(at_most)?.as_secs_f64() * 1000.0,
        ),
        None => return Err(wrong()),
    };
    Ok(Threshold { measure, at_most, over })
}

fn abort_below(text: &str) -> Result<AbortBelow, String> {
    let (bound, over) = stretch(text, ABORT_OVER)?;
    Ok(AbortBelow {
        share: share(bound)?,
        over,
    })
}

/// What stands before a `/`, and the stretch of time behind it.
fn stretch(text: &str, default: Duration) -> Result<(&str, Duration), String> {
    match text.split_once('/') {
        Some((bound, over)) => Ok((bound, duration::parse(over)?)),
        None => Ok((text, default)),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) => Ok(percent / 100.0),
        None => Err(format!("`{text}` is no share; write a number of percent, such as 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_plateaus_and_ramps() {
        let s = Duration::from_secs;
        assert_eq!(
            stage("50:20s:5s").unwrap(),
            Stage::Plateau {
                level: 50.0,
                duration: s(20),
                warm_up: s(5)
            }
        );
        assert_eq!(
            stage("ramp:0:1m").unwrap(),
            Stage::Ramp {
                to: 0.0,
                duration: s(60)
            }
        );
        for wrong in ["50", "ramp:50", "many:20s", "50:20s:5s:1s"] {
            assert!(stage(wrong).unwrap_err().contains("ramp:50:30s"), "{wrong}");
        }
        assert!(stage("50:20").unwrap_err().contains("500ms"));
    }

    #[test]
    fn bounds_are_shares_and_latencies_over_a_stretch_of_time() {
        let errors = threshold("errors=5%").unwrap();
        assert_eq!(
            (errors.measure, errors.at_most, errors.over),
            (Measure::ErrorShare, 0.05, THRESHOLD_OVER)
        );
        let p = threshold("p99.9=2s/30s").unwrap();
        assert_eq!(
            (p.to_string().as_str(), p.over.as_secs()),
            ("p99.9 at most 2000 ms", 30)
        );
        for wrong in ["errors", "q95=5ms", "pmax=5ms"] {
            assert!(threshold(wrong).unwrap_err().contains("is no threshold"), "{wrong}");
        }
        assert!(threshold("errors=0.05").unwrap_err().contains("5%"));
        let rule = abort_below("95%/10s").unwrap();
        assert_eq!((rule.share, rule.over.as_secs()), (0.95, 10));
    }
}
