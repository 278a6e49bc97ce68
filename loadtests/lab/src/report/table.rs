//! The one table of a report: arms as columns; what changed, throughput, latency, what limits it, what to try next. Where
//! there are too many arms to stand side by side, the essential as a ranking: an arm a line, the fastest first.

mod kept;
mod ranking;

use kept::{audit, behind, declared_loss, judged, unseen};
pub(super) use ranking::ranking;

use crate::results::{Arm, Cause, Comparison, Hold, RTT_TOLERANCE, Results};

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) header: Vec<String>,
    /// Name of the row and its cells.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// What a person at a terminal needs to see the finding.
pub(super) fn short(results: &Results) -> Table {
    const ROWS: [&str; 21] = [
        "throughput /s",
        "95 % interval",
        "against the first arm",
        "p95 against the first arm",
        "beyond the noise floor",
        "ceiling by the hold time /s",
        "p50 ms",
        "p95 ms",
        "max ms",
        "p50, p95, p99, max ms from the actual send",
        "sends",
        "errors",
        "sessions waiting for a lock",
        "row they wait for",
        "deadlocks",
        "limited by",
        "audit",
        "declared loss",
        "promised to readers",
        "reads held to it",
        "change not seen for ms: p50, max",
    ];
    let mut table = full(results);
    table.rows.retain(|(name, _)| ROWS.contains(&name.as_str()));
    table
}

/// Everything that is known of each arm.
pub(super) fn full(results: &Results) -> Table {
    type Cell = fn(&Results, &Arm) -> String;
    let rows: [(&str, Cell); 42] = [
        ("changes", |_, arm| arm.changes.join(", ")),
        ("gives up", |_, arm| {
            if arm.gives_up.is_empty() {
                dash()
            } else {
                arm.gives_up.join("; ")
            }
        }),
        ("throughput /s", |_, arm| format!("{:.2}", arm.throughput.mean)),
        ("95 % interval", |_, arm| interval(arm.throughput.ci95)),
        ("against the first arm", against_first),
        ("p95 against the first arm", p95_against_first),
        ("beyond the noise floor", beyond_noise),
        ("hold of the hot row ms", |_, arm| hold(arm)),
        ("ceiling by the hold time /s", |_, arm| ceiling(arm)),
        ("p50 ms", |_, arm| ms(arm.latency_ms.p50)),
        ("p95 ms", |_, arm| ms(arm.latency_ms.p95)),
        ("p99 ms", |_, arm| ms(arm.latency_ms.p99)),
        ("max ms", |_, arm| ms(arm.latency_ms.max)),
        ("p50, p95, p99, max ms from the actual send", |_, arm| raw_latency(arm)),
        ("sends", |_, arm| sends(arm)),
        ("lag of a send ms, p99", |_, arm| send_lag(arm)),
        ("warm-up s", |_, arm| warm_up(arm)),
        ("requests", |_, arm| arm.requests.to_string()),
        ("errors", |_, arm| errors(arm)),
        ("sessions waiting for a lock", waiting),
        ("waiters on tuple / transactionid", |_, arm| {
            format!("{} / {}", arm.locks.tuple_waiters, arm.locks.transactionid_waiters)
        }),
        ("row they wait for", |_, arm| row(arm)),
        ("holder meanwhile", |_, arm| holder(arm)),
        ("deadlocks", deadlocks),
        ("oldest snapshot, transactions", |_, arm| {
            let versions = arm.versions.as_ref();
            versions.map_or_else(dash, |versions| versions.snapshot_age.to_string())
        }),
        ("table updated most, kB", |_, arm| hot_table(arm)),
        ("heap-only updates", |_, arm| arm.hot_ratio.map_or_else(dash, percent)),
        ("most of a pool in use", |_, arm| percent(arm.pool_use_max)),
        ("generator's CPU", |_, arm| percent(arm.generator_cpu)),
        ("preset not in force", |_, arm| {
            if arm.not_in_force.is_empty() {
                dash()
            } else {
                arm.not_in_force.join("; ")
            }
        }),
        ("queues empty after s", |_, arm| format!("{:.1}", arm.drain_s)),
        ("most messages queued", |_, arm| arm.queue_max.to_string()),
        ("round trip to PostgreSQL ms", |_, arm| round_trip(arm)),
        ("users by Little's law", |_, arm| little(arm)),
        ("audit", |_, arm| audit(arm)),
        ("declared loss", |_, arm| declared_loss(arm)),
        ("promised to readers", |_, arm| {
            arm.staleness
                .as_ref()
                .map_or_else(dash, |staleness| staleness.promised.clone())
        }),
        ("reads held to it", |_, arm| judged(arm)),
        ("change not seen for ms: p50, max", |_, arm| unseen(arm)),
        ("modifiedAt behind ms: p50, max", |_, arm| behind(arm)),
        ("limited by", |_, arm| cause(arm.bottleneck.cause).to_owned()),
        ("next step", |_, arm| next_step(arm.bottleneck.cause).to_owned()),
    ];
    Table {
        header: std::iter::once(String::new())
            .chain(results.arms.iter().map(|arm| arm.name.clone()))
            .collect(),
        rows: rows
            .into_iter()
            .map(|(name, cell)| {
                (
                    name.to_owned(),
                    results.arms.iter().map(|arm| cell(results, arm)).collect(),
                )
            })
            // What nothing was measured for needs no row.
            .filter(|(_, cells): &(String, Vec<String>)| cells.iter().any(|cell| *cell != dash()))
            .collect(),
    }
}

/// Milliseconds with as many digits as mean something.
pub(super) fn ms(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// `1.02 … 1.10`, or that there are too few rounds.
pub(super) fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or_else(
        || "fewer than 4 rounds".to_owned(),
        |[low, high]| format!("{low:.2} … {high:.2}"),
    )
}

/// A cause in words.
pub(super) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Deadlocks => "deadlocks",
        Cause::OldSnapshot => "an old snapshot",
        Cause::Rollbacks => "transactions begun again",
        Cause::RowLock => "one row's lock",
        Cause::PoolExhausted => "database pool",
        Cause::CpuSaturated => "CPU",
        Cause::QueueGrows => "the queue's consumer",
        Cause::GeneratorLimited => "the load generator",
        Cause::NoneFound => "nothing found",
    }
}

fn next_step(cause: Cause) -> &'static str {
    match cause {
        Cause::Deadlocks => "take locks in one order everywhere, on one row the strongest first",
        Cause::OldSnapshot => "end the session that keeps it, and bound how long one may be idle in a transaction",
        Cause::Rollbacks => {
            "let a transaction wait before it has written anything: a lower isolation level, or the lock first"
        }
        Cause::RowLock => "hold the lock for fewer round trips: take it last, batch the statements, or spread the row",
        Cause::PoolExhausted => "look at what the connections wait for before adding any",
        Cause::CpuSaturated => "more CPU, or less work a request",
        Cause::QueueGrows => "a faster consumer, or several",
        Cause::GeneratorLimited => "fewer users or a second generator: this arm says nothing about the system",
        Cause::NoneFound => "more users, to find the next limit",
    }
}

fn comparison<'r>(results: &'r Results, arm: &Arm) -> Option<&'r Comparison> {
    results.comparisons.iter().find(|comparison| comparison.arm == arm.name)
}

fn against_first(results: &Results, arm: &Arm) -> String {
    comparison(results, arm).map_or_else(dash, |comparison| times(comparison.throughput_ratio, comparison.ci95))
}

fn p95_against_first(results: &Results, arm: &Arm) -> String {
    let ratio = comparison(results, arm).and_then(|it| Some(times(it.p95_paired_ratio?, it.p95_ci95)));
    ratio.unwrap_or_else(dash)
}

fn beyond_noise(results: &Results, arm: &Arm) -> String {
    let Some(comparison) = comparison(results, arm) else {
        return dash();
    };
    if results.noise_floor.as_ref().is_some_and(|floor| floor.arm == arm.name) {
        return "it is the noise floor".to_owned();
    }
    let told = |name, beyond: Option<bool>| Some(format!("{name} {}", if beyond? { "yes" } else { "no" }));
    let both = [
        told("throughput", comparison.throughput_beyond_noise),
        told("p95", comparison.p95_beyond_noise),
    ];
    let both: Vec<String> = both.into_iter().flatten().collect();
    if both.is_empty() { dash() } else { both.join(", ") }
}

/// `1.04x (0.94 … 1.16)`.
pub(super) fn times(ratio: f64, ci95: Option<[f64; 2]>) -> String {
    let interval = ci95
        .map(|[low, high]| format!(" ({low:.2} … {high:.2})"))
        .unwrap_or_default();
    format!("{ratio:.2}x{interval}")
}

fn hold(arm: &Arm) -> String {
    let Some(hold) = arm.hold else {
        return dash();
    };
    let unmeasured = match hold.unmeasured {
        0 => String::new(),
        some => format!("; {some} too short to be seen"),
    };
    format!(
        "{} (p95 {}, {} holds{unmeasured})",
        ms(hold.mean_ms),
        ms(hold.p95_ms),
        hold.count
    )
}

fn ceiling(arm: &Arm) -> String {
    let of = |hold: Hold| {
        let rows = match hold.rows {
            0 | 1 => String::new(),
            several => format!(" over {several} rows"),
        };
        let of_it = match arm.few_that_lock() {
            Some(share) => format!("of those that lock it, {} of all", percent(share)),
            None => format!("measured: {} of it", percent(arm.throughput.mean / hold.ceiling_per_s)),
        };
        format!("{:.1}{rows} ({of_it})", hold.ceiling_per_s)
    };
    arm.hold.map_or_else(dash, of)
}

fn raw_latency(arm: &Arm) -> String {
    arm.open.map_or_else(dash, |open| {
        let raw = open.raw_latency_ms;
        [raw.p50, raw.p95, raw.p99, raw.max].map(ms).join(", ")
    })
}

/// Nothing that was not sent as asked is left unsaid.
fn sends(arm: &Arm) -> String {
    arm.open.map_or_else(dash, |open| {
        format!(
            "{} at {:.1}/s; {} late, {} dropped, {} skipped",
            open.sent, open.asked_rate, open.late, open.dropped, open.skipped
        )
    })
}

fn send_lag(arm: &Arm) -> String {
    arm.open.map_or_else(dash, |open| {
        let limited = if open.generator_limited {
            " (GENERATOR-LIMITED)"
        } else {
            ""
        };
        format!("{:.2}{limited}", open.send_lag_p99_ms)
    })
}

fn warm_up(arm: &Arm) -> String {
    let Some(warm_up) = &arm.warm_up else {
        return dash();
    };
    let seconds: Vec<String> = warm_up.seconds.iter().map(|seconds| format!("{seconds:.1}")).collect();
    let unsteady = if warm_up.steady {
        String::new()
    } else {
        format!("; not steady: {}", warm_up.says.join("; "))
    };
    format!("{}{unsteady}", seconds.join(", "))
}

fn little(arm: &Arm) -> String {
    if arm.open.is_some() {
        return format!("{:.1} under way", arm.little_n);
    }
    let product = format!("{:.1} of {}", arm.little_n, arm.users);
    let Some((little, cause)) = arm.little.as_ref().and_then(|it| Some((it, it.cause.as_ref()?))) else {
        return product;
    };
    format!(
        "{product}; {} of {} measurements off by more than 2 %, most by {:+.1} %: {cause}",
        little.flagged,
        little.measurements,
        little.worst * 100.0
    )
}

/// A distance that is not the one that was asked for is said where it is read.
fn round_trip(arm: &Arm) -> String {
    let measured = format!("{:.2}", arm.rtt_ms);
    if arm.rtt_asked_ms > 0.0 && (arm.rtt_ms / arm.rtt_asked_ms - 1.0).abs() > RTT_TOLERANCE {
        return format!(
            "{measured} instead of {:.2}: not comparable with arms at the right distance",
            arm.rtt_asked_ms
        );
    }
    measured
}

fn errors(arm: &Arm) -> String {
    if arm.errors.is_empty() {
        return "0".to_owned();
    }
    arm.errors
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn waiting(_: &Results, arm: &Arm) -> String {
    if arm.locks.samples == 0 {
        return "no sample".to_owned();
    }
    format!(
        "{:.1} of {} (most {})",
        arm.locks.waiters_mean, arm.users, arm.locks.waiters_max
    )
}

fn row(arm: &Arm) -> String {
    let Some(row) = arm.locks.rows.first() else {
        return dash();
    };
    let named = row.row.as_ref().map(|row| format!(" ({row})")).unwrap_or_default();
    format!("{}{named}", row.relation)
}

fn holder(arm: &Arm) -> String {
    let mut waits: Vec<_> = arm.locks.holder_waits.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    if waits.is_empty() {
        return dash();
    }
    waits
        .into_iter()
        .take(3)
        .map(|(wait, share)| format!("{wait} {}", percent(*share)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// None is said only where another arm has some.
fn deadlocks(results: &Results, arm: &Arm) -> String {
    let count = |arm: &Arm| arm.deadlocks.as_ref().map(|deadlocks| deadlocks.count);
    if results.arms.iter().all(|arm| count(arm).unwrap_or(0) == 0) {
        return dash();
    }
    count(arm).map_or_else(dash, |count| count.to_string())
}

fn hot_table(arm: &Arm) -> String {
    let seen = arm.versions.as_ref().filter(|versions| versions.bytes > 0);
    seen.map_or_else(dash, |versions| {
        format!("{} ({})", versions.bytes / 1000, versions.relation)
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn dash() -> String {
    "–".to_owned()
}
