//! Who waited on which row: mean waiters of each arm, by row, and what the holder was doing.

use super::{Plot, ROW, Rows, colour, short};
use crate::results::Results;

/// `None` when nobody waited in any sample.
pub(in crate::report) fn draw(results: &Results) -> Option<Plot> {
    let waits: Vec<(usize, String, f64)> = results
        .arms
        .iter()
        .enumerate()
        .flat_map(|(index, arm)| {
            arm.locks.rows.iter().take(3).map(move |row| {
                let named = row.row.as_ref().map(|row| format!(" {row}")).unwrap_or_default();
                (
                    index,
                    format!("{}{named}", row.relation),
                    arm.locks.waiters_mean * row.share,
                )
            })
        })
        .filter(|(_, _, waiters)| *waiters > 0.05)
        .collect();
    if waits.is_empty() {
        return None;
    }
    let labels: Vec<String> = waits
        .iter()
        .map(|(index, _, _)| results.arms[*index].name.clone())
        .collect();
    let most = waits.iter().map(|(_, _, waiters)| *waiters).fold(0.0, f64::max);
    let mut rows = Rows::new("Sessions waiting, mean over the samples, by row", &labels, most * 1.05);
    for (at, (index, row, waiters)) in waits.iter().enumerate() {
        let middle = Rows::middle(at);
        let (from, to) = (rows.x(0.0), rows.x(*waiters));
        rows.svg
            .bar((from, middle - ROW * 0.3), (to - from, ROW * 0.6), colour(*index), 0.35);
        rows.svg.text(from + 8.0, middle + 4.0, row, "end");
        rows.svg.text(to + 6.0, middle + 4.0, &short(*waiters), "end");
    }
    let caption = "Waiters on `tuple` and on `transactionid` together, counted behind the session at the root of each \
                   chain; the row is the one that session holds.";
    Some(Plot {
        svg: rows.svg.finish(),
        caption: caption.to_owned(),
    })
}
