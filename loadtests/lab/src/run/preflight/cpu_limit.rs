//! A replica with a limit on its CPU gets no more: a program in its control group takes all it can get, and is held back.

use deploy::CpuUse;

use super::{Found, Scene};

/// The kernel deals out CPU in periods of a tenth of a second, and half a second has five of them.
const TOLERANCE: f64 = 0.15;

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let topology = scene.stack.topology();
    if topology.cpus.is_empty() {
        return Ok(Found::good("no replica is limited"));
    }
    if let Some((replica, why)) = scene.stack.unlimited().into_iter().next() {
        return Ok(Found::wrong(format!("{replica} runs without its limit: {why}")));
    }
    let mut said = Vec::new();
    for service in topology.cpus.keys() {
        for number in 1..=topology.replicas.get(service).copied().unwrap_or_default() {
            let replica = format!("{service}-{number}");
            let found = judge(&replica, &scene.stack.measured_cpu(&replica).await?);
            if !found.ok {
                return Ok(found);
            }
            said.push(found.says);
        }
    }
    Ok(Found::good(said.join("; ")))
}

fn judge(replica: &str, seen: &CpuUse) -> Found {
    let figures = format!(
        "in the group of {replica} a program got {:.2} cores where {:.2} are allowed",
        seen.got, seen.asked
    );
    if !seen.inside {
        return Found::wrong(format!("{replica} is not in the control group that should limit it"));
    }
    if seen.got > seen.asked * (1.0 + TOLERANCE) {
        return Found::wrong(format!("the limit does not hold: {figures}"));
    }
    if !seen.throttled {
        return Found::wrong(format!(
            "the limit could not be seen to hold: {figures}, and nothing held it back; is the machine busy?"
        ));
    }
    Found::good(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_must_be_met_and_not_exceeded_by_the_group_of_the_replica() {
        let real = CpuUse {
            asked: 0.5,
            got: 0.51,
            throttled: true,
            inside: true,
        };
        assert!(judge("tour-data-1", &real).ok);
        for (seen, told) in [
            (CpuUse { got: 0.98, ..real }, "does not hold"),
            (
                CpuUse {
                    throttled: false,
                    ..real
                },
                "could not be seen",
            ),
            (CpuUse { inside: false, ..real }, "not in the control group"),
        ] {
            let found = judge("tour-data-1", &seen);
            assert!(!found.ok && found.says.contains(told), "{found:?}");
        }
    }
}
