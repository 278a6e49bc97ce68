//! What the figures that need a stack share: the stack, the load, and the check of the emulated distance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deploy::{LinkName, PortBase, Stack, Topology};
use load::{Shape, Spread};

use crate::experiment::{ArmLoad, Experiment, TokenUse};
use crate::results::RTT_TOLERANCE;
use crate::run::create_tour;

/// Distance to PostgreSQL in the figures over a link.
pub(super) const RTT: Duration = Duration::from_micros(500);
/// Load that is not counted before each measured part.
const WARM_UP: Duration = Duration::from_secs(2);
/// How often, and how far apart, the distance is measured before it is believed to be off: what has just been restored is still
/// being written out, or the machine is busy with something else for some seconds, and that passes.
const DISTANCE_TRIES: u32 = 8;
const DISTANCE_AGAIN: Duration = Duration::from_millis(500);
/// How often the link is tuned again before that.
const DISTANCE_TUNED: u32 = 3;
/// Stack of every figure.
pub(super) const NAME: &str = "bench";
/// Clients of every figure.
pub(super) const USERS: usize = 10;

/// One replica each, preset `default`, on free ports.
pub(super) fn topology() -> Topology {
    Topology {
        port_base: PortBase::Free,
        ..Topology::standard(NAME)
    }
}

/// The same with [`RTT`] between service and database and a way to write the tenant's row.
pub(super) fn distant(touch: &str) -> Topology {
    distant_with([("TOUR_DATA_TOUCH".to_owned(), touch.to_owned())].into())
}

/// The same with any settings.
pub(super) fn distant_with(settings: BTreeMap<String, String>) -> Topology {
    let mut topology = topology();
    topology.rtt.insert(LinkName::Db, RTT);
    topology.settings = settings;
    topology
}

/// Brings a stack up; what it does meanwhile is shown.
pub(super) async fn up(topology: Topology) -> anyhow::Result<Stack> {
    Ok(Stack::up(topology, &mut |line| eprintln!("{line}")).await?)
}

/// Turns the stack into another arm; what it does meanwhile is shown.
pub(super) async fn switch(stack: &mut Stack, topology: Topology) -> anyhow::Result<()> {
    Ok(stack.switch(topology, &mut |line| eprintln!("{line}")).await?)
}

/// The requests of the demo's load.
pub(super) fn tours(stack: &Stack) -> anyhow::Result<Spread> {
    let demo = Experiment::find("row-lock-demo")?;
    // Figures are about the tour; a token for each would be about the issuer as well.
    let load = ArmLoad {
        token: TokenUse::Once,
        ..demo.load_of(&demo.arms[0])
    };
    create_tour(stack, &demo, &load, None)
}

/// Creates tours through the front for `duration` and returns tours a second, which are shown.
///
/// # Errors
/// A request failed: the figure would then be about something else.
pub(super) async fn tours_per_s(stack: &Stack, duration: Duration) -> anyhow::Result<f64> {
    let rate = tours_per_s_after(stack, WARM_UP, duration).await?;
    eprintln!("  {rate:.1} tours/s");
    Ok(rate)
}

/// The same after a warm-up of another length, and without a word.
///
/// # Errors
/// As of [`tours_per_s`].
pub(super) async fn tours_per_s_after(stack: &Stack, warm_up: Duration, duration: Duration) -> anyhow::Result<f64> {
    let target = Arc::new(tours(stack)?);
    let closed = Shape::closed(USERS).warm_up(warm_up).duration(duration);
    let summary = load::run(target, &closed, |_| {}).await?;
    if let Some((kind, detail)) = summary.failures.first_key_value() {
        anyhow::bail!("requests failed under load: {kind}: {detail}");
    }
    Ok(summary.throughput)
}

/// Makes sure of the distance before something is measured over it: a link that was tuned in a busy moment is tuned again.
///
/// # Errors
/// It stays off by more than 10 % all the same.
pub(super) async fn tune_distance(stack: &Stack) -> anyhow::Result<()> {
    for _ in 0..DISTANCE_TUNED {
        if check_distance(stack).await.is_ok() {
            return Ok(());
        }
        stack.calibrate(&mut |line| eprintln!("{line}")).await?;
    }
    check_distance(stack).await
}

/// Measures the round trip to PostgreSQL over the link.
///
/// # Errors
/// It stays off by more than 10 %: whatever is measured over it is void.
pub(super) async fn check_distance(stack: &Stack) -> anyhow::Result<()> {
    let off = |measured: Duration| measured.as_secs_f64() / RTT.as_secs_f64() - 1.0;
    let mut measured = stack.measured_rtt(LinkName::Db).await?;
    for _ in 1..DISTANCE_TRIES {
        if off(measured).abs() <= RTT_TOLERANCE {
            break;
        }
        tokio::time::sleep(DISTANCE_AGAIN).await;
        measured = stack.measured_rtt(LinkName::Db).await?;
    }
    anyhow::ensure!(
        off(measured).abs() <= RTT_TOLERANCE,
        "void: the round trip over the link measured {:.3} ms where {:.3} ms were asked for ({:+.0} %, at most ±10 %)",
        measured.as_secs_f64() * 1000.0,
        RTT.as_secs_f64() * 1000.0,
        off(measured) * 100.0
    );
    Ok(())
}
