//! The essential of a wide experiment as a ranking: an arm a line, the fastest first.

use super::{Table, full};
use crate::results::Results;

/// More arms than these do not fit side by side on a page.
const SIDE_BY_SIDE: usize = 6;

/// The arms of a wide experiment, the fastest first; `None` where they fit side by side.
pub(in super::super) fn ranking(results: &Results) -> Option<Table> {
    const COLUMNS: [&str; 10] = [
        "throughput /s",
        "against the first arm",
        "p95 ms",
        "ceiling by the hold time /s",
        "sessions waiting for a lock",
        "errors",
        "gives up",
        "change not seen for ms: p50, max",
        "limited by",
        "audit",
    ];
    if results.arms.len() <= SIDE_BY_SIDE {
        return None;
    }
    let full = full(results);
    let columns = COLUMNS.map(|column| full.rows.iter().find(|(name, _)| name == column));
    let columns: Vec<&(String, Vec<String>)> = columns.into_iter().flatten().collect();
    let mut ranks: Vec<usize> = (0..results.arms.len()).collect();
    let throughput = |arm: usize| results.arms[arm].throughput.mean;
    ranks.sort_by(|a, b| throughput(*b).total_cmp(&throughput(*a)));
    Some(Table {
        header: std::iter::once("arm".to_owned())
            .chain(columns.iter().map(|(name, _)| name.clone()))
            .collect(),
        rows: ranks
            .into_iter()
            .map(|arm| {
                let cells = columns.iter().map(|(_, cells)| cells[arm].clone());
                (results.arms[arm].name.clone(), cells.collect())
            })
            .collect(),
    })
}
