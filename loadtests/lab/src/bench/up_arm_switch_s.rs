//! `up.arm_switch_s`: from the end of one arm's load to the start of the next one's, with everything between: the queues
//! drained, the audit, services ended, database, cache and queues restored and verified, services started, links tuned,
//! preflight.

use std::time::Duration;

use super::{Figure, Measurement, Reading, Target, stack};
use crate::events::{self, Event, Phase, Stamped};
use crate::experiment::Experiment;
use crate::run;

pub(super) const MEASUREMENT: Measurement = Measurement {
    figures: &[Figure {
        name: "up.arm_switch_s",
        unit: "s",
        target: Target::AtMost(6.0),
    }],
    run: || Box::pin(measure()),
};

/// Two arms in alternating order: of five switches two only restore, three change the setting of a service as well.
const RUN: &str = r#"
question = "How long does it take from one arm's load to the next one's?"
users = 10
warm_up = "1s"
duration = "2s"
rounds = 3
token = "once"
payload = "create-tour.json"
rows_per_tour = 87
[common]
rtt = { db = "500us" }
[[arm]]
name = "update-first"
settings = { TOUR_DATA_TOUCH = "update-first" }
[[arm]]
name = "update-last"
settings = { TOUR_DATA_TOUCH = "update-last" }
"#;

async fn measure() -> anyhow::Result<Vec<Reading>> {
    let experiment = Experiment::parse(RUN, "arm-switch-bench").map_err(|why| anyhow::anyhow!(why))?;
    let options = run::Options {
        stack: stack::NAME.to_owned(),
        ..run::Options::default()
    };
    let done = run::run(&experiment, options).await?;
    anyhow::ensure!(
        done.results.completed,
        "the run did not complete: {}",
        done.results.failures.join("; ")
    );
    let singles = switches(&events::read(&done.folder)?);
    anyhow::ensure!(!singles.is_empty(), "the run has no switch from one load to another");
    Ok(vec![Reading::of(singles.iter().map(Duration::as_secs_f64).collect())])
}

/// From each end of a load to the start of the next.
fn switches(events: &[Stamped]) -> Vec<Duration> {
    let mut switches = Vec::new();
    let mut ended = None;
    for stamped in events {
        match &stamped.event {
            Event::Load { .. } => ended = Some(stamped.at_ms),
            Event::Phase {
                phase: Phase::WarmUp | Phase::Load,
                ..
            } => {
                let since = |ended: u64| Duration::from_millis(stamped.at_ms.saturating_sub(ended));
                switches.extend(ended.take().map(since));
            }
            _ => {}
        }
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::summary;
    use crate::events::RunKey;

    #[test]
    fn a_switch_lasts_from_the_end_of_a_load_to_the_next_warm_up_and_no_longer() {
        let key = RunKey {
            round: 1,
            arm: "a".into(),
        };
        let phase = |phase| Event::Phase {
            key: key.clone(),
            phase,
        };
        let load = || Event::Load {
            key: key.clone(),
            load: Box::new(summary(10.0)),
        };
        let events = [
            (0, phase(Phase::WarmUp)),
            (1000, phase(Phase::Load)),
            (3000, load()),
            (3500, phase(Phase::Drain)),
            (7250, phase(Phase::WarmUp)),
            (8250, phase(Phase::Load)),
            (9250, load()),
        ];
        let events: Vec<Stamped> = events
            .into_iter()
            .map(|(at_ms, event)| Stamped { at_ms, event })
            .collect();
        assert_eq!(switches(&events), [Duration::from_millis(4250)]);
        let experiment = Experiment::parse(RUN, "bench").unwrap();
        assert!(experiment.arms.len() > 1 && experiment.rounds > 2);
    }
}
