//! From sessions to a wait graph; no SQL, so that every shape of it can be tested.

use std::collections::{BTreeMap, BTreeSet};

use crate::events::{LockSample, Root, Waiter};

/// Statements are shown up to this many characters.
const STATEMENT_CHARS: usize = 160;

/// One session that is doing something, as PostgreSQL shows it.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub(super) struct Session {
    pub(super) pid: i32,
    pub(super) application: String,
    pub(super) state: String,
    pub(super) wait: String,
    pub(super) transaction_age_ms: f64,
    pub(super) statement_age_ms: f64,
    pub(super) statement: String,
    pub(super) blocked_by: Vec<i32>,
    /// Of the lock it asks for and has not got.
    pub(super) lock_type: Option<String>,
    pub(super) relation: Option<String>,
    /// `(page,tuple)`, only while it waits on a `tuple` lock.
    pub(super) row_address: Option<String>,
}

/// Finds the root of every chain and counts who stands behind it.
///
/// The sessions are not one snapshot: a blocker may have gone by the time it is looked up. Such a chain ends at the
/// last session that is known; a waiter whose blockers are all unknown is left out, since its wait is over.
pub(super) fn build(sessions: &[Session]) -> LockSample {
    let by_pid: BTreeMap<i32, &Session> = sessions.iter().map(|session| (session.pid, session)).collect();
    let mut waiters = Vec::new();
    let mut behind: BTreeMap<i32, Vec<&Session>> = BTreeMap::new();
    for session in sessions {
        let Some(root) = root_of(session, &by_pid) else {
            continue;
        };
        behind.entry(root).or_default().push(session);
        waiters.push(Waiter {
            pid: session.pid,
            application: session.application.clone(),
            blocked_by: distinct(&session.blocked_by),
            root,
            lock_type: session.lock_type.clone().unwrap_or_else(|| "unknown".to_owned()),
            waited_ms: session.statement_age_ms,
            statement: shorten(&session.statement),
        });
    }
    let roots = behind
        .into_iter()
        .map(|(pid, waiting)| root(by_pid[&pid], &waiting))
        .collect();
    LockSample {
        waiters,
        roots,
        took_ms: 0.0,
    }
}

/// Address of the row behind `root`, if one of its waiters still waits on the `tuple` itself.
pub(super) fn row_address(sessions: &[Session], waiters: &[Waiter], root: i32) -> Option<String> {
    let behind: BTreeSet<i32> = waiters
        .iter()
        .filter(|waiter| waiter.root == root)
        .map(|waiter| waiter.pid)
        .collect();
    sessions
        .iter()
        .find(|s| behind.contains(&s.pid) && s.row_address.is_some())?
        .row_address
        .clone()
}

fn root(session: &Session, waiting: &[&Session]) -> Root {
    let of_type = |lock: &str| count(waiting.iter().filter(|s| s.lock_type.as_deref() == Some(lock)).count());
    let longest = waiting
        .iter()
        .max_by(|a, b| a.statement_age_ms.total_cmp(&b.statement_age_ms));
    Root {
        pid: session.pid,
        application: session.application.clone(),
        state: session.state.clone(),
        wait: session.wait.clone(),
        transaction_age_ms: session.transaction_age_ms,
        last_statement: shorten(&session.statement),
        waiters: count(waiting.len()),
        tuple_waiters: of_type("tuple"),
        transactionid_waiters: of_type("transactionid"),
        longest_wait_ms: longest.map_or(0.0, |s| s.statement_age_ms),
        relation: waiting
            .iter()
            .find_map(|s| s.relation.clone())
            .or_else(|| waiting.iter().find_map(|s| target(&s.statement).map(str::to_owned))),
        row: None,
        waiting_statement: longest.map(|s| shorten(&s.statement)),
    }
}

/// Follows the blockers of a session to one that is not blocked itself.
///
/// `pg_blocking_pids` also names soft blockers (those ahead in the queue), which lead to the same root. In a deadlock
/// there is no such session; the smallest pid of the cycle then stands for it, so that it is counted once.
fn root_of(session: &Session, by_pid: &BTreeMap<i32, &Session>) -> Option<i32> {
    let mut seen = BTreeSet::from([session.pid]);
    let mut frontier = known(session, by_pid);
    if frontier.is_empty() {
        return None;
    }
    while let Some(pid) = frontier.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let next = known(by_pid[&pid], by_pid);
        if next.is_empty() {
            return Some(pid);
        }
        frontier.extend(next);
    }
    seen.into_iter().next().filter(|&pid| pid != session.pid)
}

fn known(session: &Session, by_pid: &BTreeMap<i32, &Session>) -> Vec<i32> {
    session
        .blocked_by
        .iter()
        .copied()
        .filter(|pid| by_pid.contains_key(pid))
        .collect()
}

/// Table that a statement changes or locks, read from its text.
fn target(statement: &str) -> Option<&str> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let after = |word: &str| {
        let found = words
            .iter()
            .position(|w| w.trim_start_matches('(').eq_ignore_ascii_case(word));
        found.map(|at| at + 1)
    };
    let at = match words.first()?.to_ascii_uppercase().as_str() {
        "UPDATE" => 1,
        "INSERT" => after("INTO")?,
        // What it reads may be its own parts.
        "WITH" => after("UPDATE").or_else(|| after("INTO"))?,
        _ => after("FROM")?,
    };
    let at = if words.get(at)?.eq_ignore_ascii_case("ONLY") {
        at + 1
    } else {
        at
    };
    let name = words.get(at)?.split('(').next()?.trim_end_matches([',', ';']);
    (!name.is_empty()).then_some(name)
}

fn distinct(pids: &[i32]) -> Vec<i32> {
    pids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

fn shorten(statement: &str) -> String {
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(STATEMENT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i32, blocked_by: &[i32], lock_type: Option<&str>) -> Session {
        Session {
            pid,
            blocked_by: blocked_by.to_vec(),
            lock_type: lock_type.map(str::to_owned),
            statement: "UPDATE tenant_config SET x = $1".into(),
            statement_age_ms: f64::from(pid),
            ..Session::default()
        }
    }

    #[test]
    fn both_generations_of_waiters_are_counted_behind_one_root() {
        let sample = build(&[
            session(1, &[], None),
            session(2, &[1], Some("transactionid")),
            session(3, &[2], Some("tuple")),
            session(4, &[2, 3], Some("tuple")),
        ]);
        assert_eq!(sample.roots.len(), 1);
        let root = &sample.roots[0];
        assert_eq!(
            (root.pid, root.waiters, root.tuple_waiters, root.transactionid_waiters),
            (1, 3, 2, 1)
        );
        assert_eq!(root.longest_wait_ms, 4.0);
        assert_eq!(root.relation.as_deref(), Some("tenant_config"));
    }

    #[test]
    fn two_rows_have_two_roots() {
        let sample = build(&[
            session(1, &[], None),
            session(2, &[], None),
            session(3, &[1], Some("transactionid")),
            session(4, &[2], Some("transactionid")),
        ]);
        assert_eq!(
            sample
                .roots
                .iter()
                .map(|root| (root.pid, root.waiters))
                .collect::<Vec<_>>(),
            [(1, 1), (2, 1)]
        );
    }

    #[test]
    fn a_deadlock_ends_and_is_counted_once() {
        let sample = build(&[
            session(1, &[2], Some("transactionid")),
            session(2, &[1], Some("transactionid")),
            session(3, &[2], Some("transactionid")),
        ]);
        assert_eq!(sample.roots.len(), 1);
        assert_eq!(sample.roots[0].pid, 1);
    }

    #[test]
    fn a_wait_whose_blocker_is_gone_is_over() {
        let sample = build(&[
            session(2, &[1], Some("transactionid")),
            session(3, &[0], Some("transactionid")),
        ]);
        assert!(sample.roots.is_empty() && sample.waiters.is_empty());
    }

    #[test]
    fn the_changed_table_is_read_from_the_statement() {
        assert_eq!(target("UPDATE tenant_config SET a = 1"), Some("tenant_config"));
        assert_eq!(target("update ONLY public.t set a = 1"), Some("public.t"));
        assert_eq!(target("INSERT INTO tour(id) VALUES (1)"), Some("tour"));
        assert_eq!(
            target("SELECT id FROM tenant_config WHERE id = $1 FOR UPDATE"),
            Some("tenant_config")
        );
        assert_eq!(
            target("WITH written AS (SELECT f($1) AS rows), touched AS (UPDATE t SET a = 1) SELECT rows FROM written"),
            Some("t")
        );
        assert_eq!(target("DELETE FROM a;"), Some("a"));
        assert_eq!(target("COMMIT"), None);
        assert_eq!(target(""), None);
    }
}
