//! Every alternative for a moment: what is far behind is not measured again.

use std::time::Duration;

use deploy::Stack;

use super::combination::{ANNOUNCE, Axes, Combination, INSERTS, TOUCH};
use crate::bench::stack;

/// Long enough for connections and plans to be made.
const WARM_UP: Duration = Duration::from_secs(1);
const HEAT: Duration = Duration::from_secs(3);
/// The touch that the inserts are compared with: as long as the row is locked before them, they differ by little.
const LAST: &str = "update-last";
/// With how many of the fastest the other ways to announce are tried: a heat is too short to tell which is the fastest.
const ANNOUNCED: usize = 3;

/// A combination with what the heat showed.
pub(super) struct Tried<'a> {
    pub(super) combination: Combination<'a>,
    pub(super) tours_per_s: f64,
}

enum Heat {
    Ran(f64),
    /// The service does not start with it: its alternatives do not go together.
    Refused,
    /// Requests failed.
    Failed,
}

/// The inserts with one touch; then every touch, the published one included, with the fastest inserts that carry it; then the
/// ways to announce with the fastest few of those.
///
/// # Errors
/// The stack did not become what a combination needs, for another reason than that the service refuses it.
pub(super) async fn run<'a>(running: &mut Stack, axes: &'a Axes<'_>) -> anyhow::Result<Vec<Tried<'a>>> {
    let begin = axes.published().with(TOUCH, axes.find(TOUCH, LAST)?);
    let mut tried = Vec::new();
    for inserts in axes.others(INSERTS) {
        first(running, [begin.with(INSERTS, inserts)], &mut tried).await?;
    }
    let inserts = fastest_first(&tried);
    for touch in axes.all(TOUCH).filter(|touch| touch.name != LAST) {
        let carried = inserts.iter().map(|inserts| inserts.with(TOUCH, touch));
        first(running, carried, &mut tried).await?;
    }
    let fixes = fastest_first(&tried).into_iter().filter(Combination::is_fix);
    for fix in fixes.take(ANNOUNCED) {
        for announce in axes.others(ANNOUNCE) {
            first(running, [fix.with(ANNOUNCE, announce)], &mut tried).await?;
        }
    }
    Ok(tried)
}

/// Tries the first of the combinations that the service starts with.
async fn first<'a>(
    running: &mut Stack,
    combinations: impl IntoIterator<Item = Combination<'a>>,
    tried: &mut Vec<Tried<'a>>,
) -> anyhow::Result<()> {
    for combination in combinations {
        match heat(running, &combination).await? {
            Heat::Refused => {}
            Heat::Failed => break,
            Heat::Ran(tours_per_s) => {
                eprintln!("  {combination}: {tours_per_s:.1} tours/s; {}", combination.gives_up());
                tried.push(Tried {
                    combination,
                    tours_per_s,
                });
                break;
            }
        }
    }
    Ok(())
}

async fn heat(running: &mut Stack, combination: &Combination<'_>) -> anyhow::Result<Heat> {
    let topology = stack::distant_with(combination.settings());
    match running.switch(topology, &mut |_| {}).await {
        Err(refused) if refused.is_refusal() => {
            eprintln!("  {combination}: refused: {}", reason(&refused.to_string()));
            return Ok(Heat::Refused);
        }
        switched => switched?,
    }
    Ok(match stack::tours_per_s_after(running, WARM_UP, HEAT).await {
        Ok(tours_per_s) => Heat::Ran(tours_per_s),
        Err(failed) => {
            eprintln!("  {combination}: {failed}");
            Heat::Failed
        }
    })
}

/// Why a service did not start: the error in the last line of its log, which comes at the end.
fn reason(refused: &str) -> String {
    let last = refused.lines().last().unwrap_or_default().trim();
    let logged: Option<serde_json::Value> = serde_json::from_str(last).ok();
    let error = logged.as_ref().and_then(|line| line["error"].as_str());
    error.unwrap_or(last).to_owned()
}

fn fastest_first<'a>(tried: &[Tried<'a>]) -> Vec<Combination<'a>> {
    let mut order: Vec<&Tried<'a>> = tried.iter().collect();
    order.sort_by(|one, other| other.tours_per_s.total_cmp(&one.tours_per_s));
    order.into_iter().map(|tried| tried.combination.clone()).collect()
}
