//! The load generator has CPU to spare: a thread that takes all it can get is given enough of a core, and no other guest of
//! the host takes it away.

use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};

use super::{Found, Scene};
use crate::probes::processes::{Machine, machine_now};

/// How long the thread takes all it can get.
const SPIN: Duration = Duration::from_millis(150);
/// The least share of a core it must get. A generator of a few hundred requests a second needs a hundredth of it; with less
/// than this left it would wait for a CPU, and take that for the system's latency.
const LEAST: f64 = 0.25;
/// The most of the machine that others on the same host may take.
const STOLEN: f64 = 0.25;
/// A stack that has just come up is busy for a while.
const TRIES: u32 = 20;
const AGAIN: Duration = Duration::from_millis(250);

pub(super) async fn check(_: &Scene<'_>) -> anyhow::Result<Found> {
    let mut found = look().await?;
    for _ in 1..TRIES {
        if found.ok {
            break;
        }
        tokio::time::sleep(AGAIN).await;
        found = look().await?;
    }
    Ok(found)
}

async fn look() -> anyhow::Result<Found> {
    let before = machine_now()?;
    let share = tokio::task::spawn_blocking(spin)
        .await
        .context("the thread panicked")??;
    Ok(judge(share, &machine_now()?.since(&before)))
}

/// Share of a core that this thread gets when it wants all of it.
fn spin() -> anyhow::Result<f64> {
    let used = || -> anyhow::Result<Duration> {
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        let micros = |time: nix::sys::time::TimeVal| {
            Duration::from_micros(u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or_default())
        };
        Ok(micros(usage.user_time()) + micros(usage.system_time()))
    };
    let (began, before) = (Instant::now(), used()?);
    while began.elapsed() < SPIN {
        std::hint::spin_loop();
    }
    Ok((used()? - before).as_secs_f64() / began.elapsed().as_secs_f64())
}

fn judge(share: f64, machine: &Machine) -> Found {
    let part = |ticks: u64| ticks as f64 / machine.total.max(1) as f64;
    let (busy, steal) = (part(machine.busy), part(machine.steal));
    let says = format!(
        "a thread got {:.0} % of a core; the machine was {:.0} % busy meanwhile, {:.0} % was taken by other guests",
        share * 100.0,
        busy * 100.0,
        steal * 100.0
    );
    if share >= LEAST && steal <= STOLEN {
        Found::good(says)
    } else {
        Found::wrong(format!(
            "the load generator would have to wait for a CPU: {says}; end what else runs here"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_that_would_wait_for_a_cpu_is_noticed() {
        let machine = |busy, steal| Machine {
            total: 100,
            busy,
            steal,
        };
        assert!(judge(0.99, &machine(55, 0)).ok);
        assert!(!judge(0.20, &machine(100, 0)).ok);
        let found = judge(0.95, &machine(50, 40));
        assert!(!found.ok && found.says.contains("40 %"), "{found:?}");
    }

    #[test]
    fn a_thread_gets_some_of_a_core_and_no_more_than_one() {
        let share = spin().unwrap();
        assert!(share > 0.01 && share < 1.05, "{share}");
    }
}
