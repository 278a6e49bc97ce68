//! Deadlocks of an arm, by kind, with how they come about.

use super::evidence::Evidence;
use crate::events::Deadlock;
use crate::results::{DeadlockKind, DeadlockPlace, Deadlocks};

/// Kinds that are listed; the rest are variations.
const KINDS: usize = 5;

/// All deadlocks of an arm's rounds; `None` where nobody asked for them.
pub(super) fn summarise(runs: &[&Evidence]) -> Option<Deadlocks> {
    let counted: Vec<u64> = runs.iter().filter_map(|run| run.deadlocks()).collect();
    if counted.is_empty() {
        return None;
    }
    let mut kinds: Vec<DeadlockKind> = Vec::new();
    for deadlock in runs.iter().flat_map(|run| &run.logged_deadlocks) {
        let circle = circle(deadlock);
        let at = kinds.iter().position(|kind| kind.circle == circle).unwrap_or_else(|| {
            kinds.push(DeadlockKind {
                circle,
                why: why(deadlock),
                remedy: remedy(deadlock),
                ..DeadlockKind::default()
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[at];
        kind.count += 1;
        // A number is larger than none.
        let longest = kind.waited_ms.into_iter().chain(deadlock.waited_ms);
        kind.waited_ms = longest.reduce(f64::max);
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    kinds.truncate(KINDS);
    Some(Deadlocks {
        count: counted.into_iter().sum(),
        kinds,
    })
}

fn circle(deadlock: &Deadlock) -> Vec<DeadlockPlace> {
    let sessions = deadlock.sessions.iter();
    let places = sessions.map(|session| DeadlockPlace {
        statement: session.statement.split_whitespace().collect::<Vec<_>>().join(" "),
        waits_for: without_numbers(&session.waits_for),
    });
    places.collect()
}

/// `ShareLock on transaction 750` and `ExclusiveLock on tuple (0,7) of tenant_config` without what differs each time.
fn without_numbers(lock: &str) -> String {
    let named = |word: &&str| !word.chars().all(|c| c.is_ascii_digit() || "(),".contains(c));
    lock.split(' ').filter(named).collect::<Vec<_>>().join(" ")
}

/// What the log says, and then where the locks come from that it does not name.
fn why(deadlock: &Deadlock) -> String {
    let many = deadlock.sessions.len();
    let Some(relation) = &deadlock.relation else {
        return format!("{many} sessions hold what the next one waits for.");
    };
    // The log names no row but that of the victim.
    let same = alike(deadlock) && !deadlock.referring.is_empty();
    let mut text = if same {
        format!("{many} sessions have locked the same row of {relation}, and each waits for another to let go.")
    } else {
        format!(
            "{many} sessions hold what the next one waits for; the one that was rolled back waited for a row of {relation}."
        )
    };
    if !deadlock.referring.is_empty() {
        text += &format!(
            " {} by inserting into {}: the check of a foreign key takes FOR KEY SHARE on the row it refers \
             to and keeps it to the end of the transaction, which several may do at once.",
            if same {
                "They can have locked it"
            } else {
                "Such a row can have been locked"
            },
            deadlock.referring.join(", ")
        );
    }
    let changed = changed_keys(deadlock);
    if !changed.is_empty() {
        text += &format!(
            " {}n UPDATE that changes the value of a column of a unique index takes FOR UPDATE and waits for \
             everyone who has FOR KEY SHARE; one that changes no such column takes FOR NO KEY UPDATE and waits for none of them. Those that it sets are {}.",
            if same { "Then each asks for more: a" } else { "A" },
            changed.join(", ")
        );
    }
    text
}

/// Whether all sessions were in the same statement.
fn alike(deadlock: &Deadlock) -> bool {
    let sessions = &deadlock.sessions;
    sessions.windows(2).all(|pair| {
        let [one, other] = [&pair[0], &pair[1]].map(|session| session.statement.split_whitespace());
        one.eq(other)
    })
}

fn remedy(deadlock: &Deadlock) -> String {
    let mut text = "Take locks in one order everywhere, and of the locks on one row the strongest first".to_owned();
    if !deadlock.referring.is_empty() {
        text += ": the UPDATE, or SELECT … FOR UPDATE, before the first INSERT that refers to the row";
    }
    text += ".";
    let changed = changed_keys(deadlock);
    if !changed.is_empty() {
        text += " Or keep columns that change out of the unique indexes of a table that others refer to.";
    }
    text
}

/// Columns of unique indexes that a statement of the circle sets, whether to another value or not.
fn changed_keys(deadlock: &Deadlock) -> Vec<&str> {
    let set: Vec<&str> = deadlock
        .sessions
        .iter()
        .flat_map(|session| set_columns(&session.statement))
        .collect();
    let keys = deadlock.keys.iter().map(String::as_str);
    keys.filter(|key| key.split(' ').next().is_some_and(|column| set.contains(&column)))
        .collect()
}

/// `a` and `b` of `UPDATE t SET a=$1, b = $2 WHERE …`.
fn set_columns(statement: &str) -> Vec<&str> {
    let Some((_, rest)) = statement.split_once("SET") else {
        return Vec::new();
    };
    let (assignments, _) = rest.split_once("WHERE").unwrap_or((rest, ""));
    let columns = assignments
        .split(',')
        .filter_map(|each| Some(each.split_once('=')?.0.trim()));
    columns.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::DeadlockedSession;

    const UPDATE: &str =
        "UPDATE tenant_config SET modified_at=$1, tenant=$2, tenant_info=$3, tenant_key=$4 WHERE id=$5";

    fn deadlock(transaction: u32, waited_ms: f64) -> Deadlock {
        let session = |pid, blocked_by, waits_for: String| DeadlockedSession {
            pid,
            waits_for,
            blocked_by,
            statement: UPDATE.to_owned(),
        };
        Deadlock {
            relation: Some("tenant_config".into()),
            row: Some("(0,7)".into()),
            waited_ms: Some(waited_ms),
            sessions: vec![
                session(71, 72, format!("ShareLock on transaction {transaction}")),
                session(
                    72,
                    71,
                    format!("ExclusiveLock on tuple (0,{transaction}) of tenant_config"),
                ),
            ],
            referring: vec!["tour (tour_tenant_config)".into()],
            keys: vec![
                "id (tenant_config_pkey)".into(),
                "tenant_info (tenant_config_info)".into(),
                "tenant_key (tenant_config_info)".into(),
            ],
        }
    }

    fn run(count: u64, logged: Vec<Deadlock>) -> Evidence {
        Evidence {
            counted_deadlocks: Some(count),
            logged_deadlocks: logged,
            ..Evidence::default()
        }
    }

    #[test]
    fn deadlocks_that_differ_in_numbers_alone_are_of_one_kind() {
        let other = Deadlock {
            relation: None,
            sessions: Vec::new(),
            ..deadlock(1, 1000.5)
        };
        let (first, second) = (
            run(3, vec![deadlock(750, 1000.5), deadlock(760, 1003.0)]),
            run(1, vec![other]),
        );
        let deadlocks = summarise(&[&first, &second, &Evidence::default()]).unwrap();
        assert_eq!(deadlocks.count, 4);
        let kind = &deadlocks.kinds[0];
        assert_eq!(
            (kind.count, kind.waited_ms, deadlocks.kinds.len()),
            (2, Some(1003.0), 2)
        );
        let waits: Vec<&str> = kind.circle.iter().map(|place| place.waits_for.as_str()).collect();
        assert_eq!(
            waits,
            ["ShareLock on transaction", "ExclusiveLock on tuple of tenant_config"]
        );
        assert_eq!(summarise(&[&Evidence::default()]), None);
    }

    #[test]
    fn what_was_logged_counts_where_the_counter_is_late() {
        let late = run(1, vec![deadlock(750, 1000.5), deadlock(760, 1003.0)]);
        assert_eq!(summarise(&[&late, &run(3, Vec::new())]).unwrap().count, 5);
    }

    #[test]
    fn sessions_in_different_statements_are_not_said_to_want_the_same_row() {
        let mut deadlock = deadlock(750, 1000.5);
        deadlock.sessions[1].statement = "UPDATE tour SET name=$1 WHERE id=$2".into();
        let why = why(&deadlock);
        for part in [
            "2 sessions hold what the next one waits for; the one that was rolled back waited for a row of tenant_config.",
            "Such a row can have been locked by inserting into tour (tour_tenant_config)",
            "An UPDATE that changes",
        ] {
            assert!(why.contains(part), "{part} in {why}");
        }
        assert!(!why.contains("the same row") && !why.contains("each asks"), "{why}");
    }

    #[test]
    fn a_deadlock_is_explained_by_the_foreign_key_and_the_unique_index_behind_it() {
        let deadlock = deadlock(750, 1000.5);
        let why = why(&deadlock);
        for part in [
            "2 sessions have locked the same row of tenant_config",
            "inserting into tour (tour_tenant_config)",
            "takes FOR UPDATE",
            "Those that it sets are tenant_info (tenant_config_info), tenant_key (tenant_config_info).",
        ] {
            assert!(why.contains(part), "{part} in {why}");
        }
        let remedy = remedy(&deadlock);
        assert!(
            remedy.contains("the strongest first: the UPDATE") && remedy.contains("unique indexes"),
            "{remedy}"
        );
    }

    #[test]
    fn what_the_catalogue_does_not_know_is_not_said() {
        let plain = Deadlock {
            referring: Vec::new(),
            keys: vec!["id (tenant_config_pkey)".into()],
            ..deadlock(750, 1000.5)
        };
        let why = why(&plain);
        assert!(!why.contains("foreign key") && !why.contains("FOR UPDATE"), "{why}");
        assert!(!why.contains("the same row"), "{why}");
        assert!(remedy(&plain).ends_with("the strongest first."));
    }
}
