//! Deadlocks in words.

use crate::results::{DeadlockKind, Results};

/// The section of `report.md`; empty without deadlocks.
pub(super) fn section(results: &Results) -> String {
    if !some(results) {
        return String::new();
    }
    let mut text = "\n## Deadlocks\n".to_owned();
    for arm in &results.arms {
        let Some(deadlocks) = arm.deadlocks.as_ref().filter(|deadlocks| deadlocks.count > 0) else {
            continue;
        };
        text += &format!("\n**{}**: {} deadlocks.\n", arm.name, deadlocks.count);
        for kind in &deadlocks.kinds {
            text += &format!("\n{}\n\n", logged(kind));
            for (index, place) in kind.circle.iter().enumerate() {
                let ends = if index == 0 { "; rolled back" } else { "" };
                text += &format!(
                    "{}. `{}` waits for {}{ends}\n",
                    index + 1,
                    place.statement,
                    place.waits_for
                );
            }
            text += &format!("\n{}\n\nWhat to do: {}\n", kind.why, kind.remedy);
        }
    }
    text
}

/// Whether there is anything to say.
pub(super) fn some(results: &Results) -> bool {
    let mut counted = results.arms.iter().filter_map(|arm| arm.deadlocks.as_ref());
    counted.any(|deadlocks| deadlocks.count > 0)
}

/// How many of a kind, and when they were noticed.
fn logged(kind: &DeadlockKind) -> String {
    let noticed = kind
        .waited_ms
        .map_or_else(String::new, |ms| format!(", noticed after up to {ms:.0} ms"));
    format!(
        "{} were logged like this{noticed}; each waits for the next one, the last for the first:",
        kind.count
    )
}
