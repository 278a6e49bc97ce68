//! What PostgreSQL logs of a deadlock.
//!
//! ```text
//! … [71] tour_data@tour_data tour-data-1 LOG:  process 71 detected deadlock while waiting for ShareLock on transaction 750 after 1000.1 ms
//! … [71] tour_data@tour_data tour-data-1 ERROR:  deadlock detected
//! … [71] tour_data@tour_data tour-data-1 DETAIL:  Process 71 waits for ShareLock on transaction 750; blocked by process 72.
//! ⇥Process 72 waits for ExclusiveLock on tuple (0,7) of relation 16390 of database 16384; blocked by process 71.
//! ⇥Process 71: UPDATE tenant_config SET …
//! ⇥Process 72: UPDATE tenant_config SET …
//! … [71] tour_data@tour_data tour-data-1 CONTEXT:  while updating tuple (0,7) in relation "tenant_config"
//! ```

use std::collections::BTreeMap;

use crate::events::{Deadlock, DeadlockedSession};

/// One line of the log with those that continue it.
#[derive(Debug)]
struct Record<'l> {
    pid: i32,
    /// `user@database`.
    session: &'l str,
    /// `ERROR`, `DETAIL` …
    level: &'l str,
    text: String,
}

/// The deadlocks of a database that a part of the log tells of, in their order.
pub(super) fn deadlocks(log: &str, database: &str) -> Vec<Deadlock> {
    let ending = format!("@{database}");
    let mut found: Vec<(i32, Deadlock)> = Vec::new();
    let mut waited: BTreeMap<i32, f64> = BTreeMap::new();
    for record in records(log) {
        if !record.session.ends_with(&ending) {
            continue;
        }
        match record.level {
            "LOG" => {
                if let Some(ms) = waited_ms(&record.text) {
                    waited.insert(record.pid, ms);
                }
            }
            "ERROR" if record.text == "deadlock detected" => {
                let deadlock = Deadlock {
                    waited_ms: waited.remove(&record.pid),
                    ..Deadlock::default()
                };
                found.push((record.pid, deadlock));
            }
            // What belongs to a message comes right behind it.
            level => {
                if let Some((victim, deadlock)) = found.last_mut().filter(|(victim, _)| *victim == record.pid) {
                    match level {
                        "DETAIL" if deadlock.sessions.is_empty() => {
                            deadlock.sessions = in_turn(sessions(&record.text), *victim);
                        }
                        "CONTEXT" if deadlock.relation.is_none() => {
                            (deadlock.row, deadlock.relation) = row(&record.text).unzip();
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    let told = found.into_iter().map(|(_, deadlock)| deadlock);
    told.filter(|deadlock| !deadlock.sessions.is_empty()).collect()
}

/// Number of the relation in `ExclusiveLock on tuple (0,7) of relation 16390 of database 16384`.
pub(super) fn relation_oid(lock: &str) -> Option<u32> {
    let (_, rest) = lock.split_once("relation ")?;
    rest.split(' ').next()?.parse().ok()
}

/// The same lock with the relation's name.
pub(super) fn with_relation(lock: &str, name: &str) -> String {
    lock.split_once("relation ")
        .map_or_else(|| lock.to_owned(), |(before, _)| format!("{before}{name}"))
}

fn records(log: &str) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = Vec::new();
    for line in log.lines() {
        if let Some(more) = line.strip_prefix('\t') {
            if let Some(last) = records.last_mut() {
                last.text.push('\n');
                last.text += more;
            }
        } else {
            records.extend(record(line));
        }
    }
    records
}

/// `TIME [PID] USER@DATABASE APPLICATION LEVEL:  TEXT`, as the lab's `log_line_prefix` has it; `None` for a line of the server
/// itself, which has no session.
fn record(line: &str) -> Option<Record<'_>> {
    let (head, rest) = line.split_once("] ")?;
    let (_, pid) = head.rsplit_once('[')?;
    let (head, text) = rest.split_once(":  ")?;
    let (session, head) = head.split_once(' ')?;
    Some(Record {
        pid: pid.parse().ok()?,
        session,
        level: head.rsplit(' ').next()?,
        text: text.to_owned(),
    })
}

/// `process 71 detected deadlock while waiting for … after 1000.1 ms`
fn waited_ms(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once(" detected deadlock while waiting for ")?;
    let (_, after) = rest.rsplit_once(" after ")?;
    after.strip_suffix(" ms")?.parse().ok()
}

/// `while updating tuple (0,7) in relation "tenant_config"`: the row's place and the relation.
fn row(text: &str) -> Option<(String, String)> {
    let (_, rest) = text.split_once(" tuple ")?;
    let (place, rest) = rest.split_once(" in relation \"")?;
    let (relation, _) = rest.split_once('"')?;
    Some((place.to_owned(), relation.to_owned()))
}

fn sessions(detail: &str) -> Vec<DeadlockedSession> {
    let mut sessions: Vec<DeadlockedSession> = Vec::new();
    // Whose statement the next lines belong to.
    let mut speaking = None;
    for line in detail.lines() {
        let Some((pid, rest)) = of_process(line) else {
            if let Some(session) = speaking.and_then(|at: usize| sessions.get_mut(at)) {
                session.statement.push('\n');
                session.statement += line;
            }
            continue;
        };
        if let Some(waits) = rest.strip_prefix(" waits for ") {
            let Some((lock, blocker)) = waits.rsplit_once("; blocked by process ") else {
                continue;
            };
            sessions.push(DeadlockedSession {
                pid,
                waits_for: lock.to_owned(),
                blocked_by: blocker.trim_end_matches('.').parse().unwrap_or_default(),
                statement: String::new(),
            });
        } else if let Some(statement) = rest.strip_prefix(": ") {
            speaking = sessions.iter().position(|session| session.pid == pid);
            if let Some(at) = speaking {
                statement.clone_into(&mut sessions[at].statement);
            }
        }
    }
    sessions
}

/// `Process 71…`, split behind the number.
fn of_process(line: &str) -> Option<(i32, &str)> {
    let rest = line.strip_prefix("Process ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    Some((rest[..digits].parse().ok()?, &rest[digits..]))
}

/// The victim first, then whom it waits for, and so on round the circle.
fn in_turn(sessions: Vec<DeadlockedSession>, victim: i32) -> Vec<DeadlockedSession> {
    let mut turn = Vec::with_capacity(sessions.len());
    let mut next = victim;
    while turn.len() < sessions.len() {
        let Some(session) = sessions.iter().find(|session| session.pid == next) else {
            // A circle that does not close was cut off in the log; what is there is better than nothing.
            return sessions;
        };
        next = session.blocked_by;
        turn.push(session.clone());
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-11-30 20:00:00.000 UTC [9] LOG:  checkpoint starting: time
2026-11-30 20:00:01.000 UTC [71] tour_data@tour_data tour-data-1 LOG:  process 71 detected deadlock while waiting for ShareLock on transaction 750 after 1000.125 ms
2026-11-30 20:00:01.000 UTC [71] tour_data@tour_data tour-data-1 DETAIL:  Process holding the lock: 72. Wait queue: .
2026-11-30 20:00:01.000 UTC [71] tour_data@tour_data tour-data-1 CONTEXT:  while updating tuple (0,7) in relation \"tenant_config\"
2026-11-30 20:00:01.000 UTC [71] tour_data@tour_data tour-data-1 STATEMENT:  UPDATE tenant_config SET tenant_info=$3 WHERE id=$5
2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 ERROR:  deadlock detected
2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 DETAIL:  Process 71 waits for ShareLock on transaction 750; blocked by process 73.
\tProcess 72 waits for ExclusiveLock on tuple (0,7) of relation 16390 of database 16384; blocked by process 71.
\tProcess 73 waits for ExclusiveLock on tuple (0,7) of relation 16390 of database 16384; blocked by process 72.
\tProcess 71: UPDATE tenant_config SET tenant_info=$3 WHERE id=$5
\tProcess 72: UPDATE tenant_config
\t  SET tenant_info=$3
\tProcess 73: UPDATE tenant_config SET tenant=$2
2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 HINT:  See server log for query details.
2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 CONTEXT:  while updating tuple (0,7) in relation \"tenant_config\"
2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 STATEMENT:  UPDATE tenant_config SET tenant_info=$3 WHERE id=$5
2026-11-30 20:00:02.000 UTC [80] post@post post-1 ERROR:  deadlock detected
2026-11-30 20:00:02.000 UTC [80] post@post post-1 DETAIL:  Process 80 waits for ShareLock on transaction 1; blocked by process 81.
2026-11-30 20:00:02.500 UTC [71] tour_data@tour_data tour-data-1 ERROR:  relation \"x\" does not exist at character 15
2026-11-30 20:00:03.000 UTC [72] tour_data@tour_data tour-data-1 ERROR:  deadlock detected
2026-11-30 20:00:03.000 UTC [72] tour_data@tour_data tour-data-1 DETAIL:  Process 72 waits for ShareLock on transaction 3; blocked by process 74.
\tProcess 74 waits for AccessShareLock on relation 2608 of database 16384; blocked by process 72.
\tProcess 72: COMMIT
\tProcess 74: <backend information not available>
";

    #[test]
    fn a_deadlock_is_read_with_its_row_its_wait_and_its_circle_from_the_victim_on() {
        let deadlocks = deadlocks(LOG, "tour_data");
        assert_eq!(deadlocks.len(), 2, "{deadlocks:#?}");
        let first = &deadlocks[0];
        assert_eq!(first.relation.as_deref(), Some("tenant_config"));
        assert_eq!(first.row.as_deref(), Some("(0,7)"));
        assert_eq!(first.waited_ms, Some(1000.125));
        let circle: Vec<(i32, i32)> = first.sessions.iter().map(|each| (each.pid, each.blocked_by)).collect();
        assert_eq!(circle, [(71, 73), (73, 72), (72, 71)]);
        assert_eq!(first.sessions[0].waits_for, "ShareLock on transaction 750");
        assert_eq!(
            first.sessions[2].statement,
            "UPDATE tenant_config\n  SET tenant_info=$3"
        );
        assert_eq!(first.sessions[1].statement, "UPDATE tenant_config SET tenant=$2");

        let second = &deadlocks[1];
        assert_eq!((&second.relation, &second.row, second.waited_ms), (&None, &None, None));
        assert_eq!(
            second.sessions[1].waits_for,
            "AccessShareLock on relation 2608 of database 16384"
        );
    }

    #[test]
    fn a_relation_gets_its_name_for_its_number() {
        let lock = "ExclusiveLock on tuple (0,7) of relation 16390 of database 16384";
        assert_eq!(relation_oid(lock), Some(16390));
        assert_eq!(
            with_relation(lock, "tenant_config"),
            "ExclusiveLock on tuple (0,7) of tenant_config"
        );
        assert_eq!(relation_oid("ShareLock on transaction 750"), None);
    }

    #[test]
    fn what_is_cut_off_or_is_no_line_of_the_log_is_no_deadlock() {
        let (cut, _) = LOG
            .split_once("2026-11-30 20:00:01.001 UTC [71] tour_data@tour_data tour-data-1 DETAIL")
            .unwrap();
        assert!(deadlocks(cut, "tour_data").is_empty());
        assert!(deadlocks("Process 71 waits\n\tfor nothing\n[x] ] :  \n", "tour_data").is_empty());
    }
}
