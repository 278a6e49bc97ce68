//! A load's result as a table.

use hdrhistogram::Histogram;
use load::{OpenLoop, Part, Plateau, Summary};

use crate::commands::table;

/// Every plateau, and all of them together where there are several.
pub(super) fn summary(summary: &Summary, unit: &str) -> String {
    let mut table = table([
        "LEVEL",
        "REQUESTS/S",
        "OK",
        "FAILED",
        "LATENCY",
        "P50 MS",
        "P95 MS",
        "P99 MS",
        "MAX MS",
    ]);
    let mut add = |level: String, (rate, ok, failed): (f64, u64, u64), latencies: [Option<&Histogram<u64>>; 2]| {
        let [corrected, raw] = latencies;
        let count = [level, format!("{rate:.1}"), ok.to_string(), failed.to_string()];
        if let Some(corrected) = corrected {
            let name = if raw.is_some() { "from intended send" } else { "" };
            table.add_row(count.into_iter().chain(quantiles(name, corrected)));
        }
        if let Some(raw) = raw {
            table.add_row(std::iter::repeat_n(String::new(), 4).chain(quantiles("from actual send", raw)));
        }
    };
    for plateau in &summary.plateaus {
        add(
            format!("{}{unit}", plateau.level),
            (plateau.throughput, plateau.ok, plateau.failed()),
            [Some(&plateau.latency), plateau.raw_latency.as_ref()],
        );
    }
    if summary.plateaus.len() > 1 {
        let raw = summary.open.as_ref().map(|open| &open.raw_latency);
        add(
            "all".to_owned(),
            (summary.throughput, summary.ok, summary.failed()),
            [Some(&summary.latency), raw],
        );
    }
    let mut text = format!("{table}\n");
    if !summary.parts.is_empty() {
        text.push_str(&parts(&summary.parts));
    }
    if let Some(open) = &summary.open {
        text.push_str(&sends(open, &summary.plateaus, unit));
    }
    text.push_str(&format!(
        "{:.1} at work by Little's law; {:.1} us of CPU a request",
        summary.little_n(),
        summary.cpu_us_per_iteration()
    ));
    for (kind, detail) in &summary.failures {
        let count = summary.errors.get(kind).copied().unwrap_or_default();
        text.push_str(&format!("\n{kind} ×{count}: {detail}"));
    }
    text
}

/// The requests of a mix, each by itself.
fn parts(parts: &[Part]) -> String {
    let mut table = table(["REQUEST", "OK", "FAILED", "P50 MS", "P95 MS", "P99 MS", "MAX MS"]);
    for part in parts {
        let failed: u64 = part.errors.values().sum();
        let count = [part.name.clone(), part.ok.to_string(), failed.to_string()];
        table.add_row(count.into_iter().chain(values(&part.latency)));
    }
    format!("{table}\n")
}

fn quantiles(name: &str, histogram: &Histogram<u64>) -> impl Iterator<Item = String> {
    std::iter::once(name.to_owned()).chain(values(histogram))
}

fn values(histogram: &Histogram<u64>) -> [String; 4] {
    [0.50, 0.95, 0.99, 1.0].map(|q| format!("{:.2}", histogram.value_at_quantile(q) as f64 / 1000.0))
}

/// What became of the sends; one line a plateau where there are several.
fn sends(open: &OpenLoop, plateaus: &[Plateau], unit: &str) -> String {
    let mut text = format!(
        "{:.1}/s asked for: {} sent, {} of them late, {} dropped, {} skipped; send lag p99 {:.3} ms",
        open.asked_rate, open.sent, open.late_sends, open.dropped, open.skipped, open.send_lag_p99_ms
    );
    if let Some(seed) = open.seed {
        text.push_str(&format!("; seed {seed}"));
    }
    text.push('\n');
    for plateau in plateaus.iter().filter(|_| plateaus.len() > 1) {
        text.push_str(&format!(
            "  {}{unit}: {} late, {} dropped, {} skipped\n",
            plateau.level, plateau.late, plateau.dropped, plateau.skipped
        ));
    }
    if open.generator_limited {
        text.push_str(
            "GENERATOR-LIMITED: sends were more than 1 ms behind their time, so this says nothing about the system\n",
        );
    }
    text
}
