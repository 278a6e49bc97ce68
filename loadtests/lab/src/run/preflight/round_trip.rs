//! The round trip over every emulated link is the one that was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use deploy::LinkName;

use super::{Found, Scene};
use crate::results::RTT_TOLERANCE;

/// How often, and how far apart, it is measured before it is believed to be off: what has just been restored is still being
/// written out, or the machine is busy with something else for some seconds, and that passes.
const TRIES: u32 = 24;
const AGAIN: Duration = Duration::from_millis(400);
/// When it was off twice, the link was tuned in a busy moment and is tuned again; so it is after so many more.
const TUNE_AFTER: u32 = 2;
const TUNE_EVERY: u32 = 6;
/// A tenth of a short distance is less than what a machine with few cores adds by itself.
const SLACK: Duration = Duration::from_micros(100);

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let asked: BTreeMap<LinkName, Duration> = LinkName::ALL
        .into_iter()
        .filter_map(|link| Some((link, scene.stack.intended_rtt(link)?)))
        .collect();
    let mut found = look(scene, &asked).await?;
    for tried in 1..TRIES {
        if found.ok {
            break;
        }
        if tried % TUNE_EVERY == TUNE_AFTER {
            scene.stack.calibrate(&mut |_| ()).await?;
        }
        tokio::time::sleep(AGAIN).await;
        found = look(scene, &asked).await?;
    }
    Ok(found)
}

async fn look(scene: &Scene<'_>, asked: &BTreeMap<LinkName, Duration>) -> anyhow::Result<Found> {
    let mut measured = Vec::new();
    // The way to PostgreSQL is in every report, emulated or not.
    let database = scene.stack.measured_rtt(LinkName::Db).await?;
    scene.database_round_trip.set(Some(database));
    for (link, asked) in asked {
        let now = match link {
            LinkName::Db => database,
            LinkName::Redis | LinkName::Broker => scene.stack.measured_rtt(*link).await?,
        };
        measured.push((*link, *asked, now));
    }
    Ok(judge(&measured))
}

/// Link, asked for, measured.
fn judge(measured: &[(LinkName, Duration, Duration)]) -> Found {
    if measured.is_empty() {
        return Found::good("no distance is emulated");
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let said = measured
        .iter()
        .map(|(link, asked, now)| format!("{link} {:.3} ms, asked {:.3} ms", ms(*now), ms(*asked)));
    let said = said.collect::<Vec<_>>().join("; ");
    let near = |asked: Duration, now: Duration| now.abs_diff(asked) <= asked.mul_f64(RTT_TOLERANCE).max(SLACK);
    if measured.iter().all(|(_, asked, now)| near(*asked, *now)) {
        Found::good(said)
    } else {
        Found::wrong(format!("the distance is not the one that was asked for: {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_that_is_off_by_more_than_a_tenth_is_told_with_both_figures() {
        let us = Duration::from_micros;
        assert!(judge(&[]).ok);
        assert!(judge(&[(LinkName::Db, us(1000), us(1090))]).ok);
        assert!(judge(&[(LinkName::Redis, us(200), us(290))]).ok);
        let found = judge(&[
            (LinkName::Db, us(1000), us(1000)),
            (LinkName::Redis, us(2000), us(2300)),
        ]);
        assert!(
            !found.ok && found.says.contains("redis 2.300 ms, asked 2.000 ms"),
            "{found:?}"
        );
    }
}
