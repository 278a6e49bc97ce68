//! Exchanges as a client and PostgreSQL have them, in every chunking.

use super::*;

const HOT: &str = "tenant_config";
const MS: Duration = Duration::from_millis(1);

/// Who says what, and how long after the one before.
enum Said {
    Client(Vec<u8>),
    Server(Vec<u8>, u64),
}
use Said::{Client, Server};

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind], length.as_slice(), body].concat()
}

fn startup() -> Vec<u8> {
    let body = [&196_608_u32.to_be_bytes(), b"user\0rowlock\0\0".as_slice()].concat();
    [&u32::try_from(body.len() + 4).unwrap().to_be_bytes(), body.as_slice()].concat()
}

fn query(text: &str) -> Vec<u8> {
    message(b'Q', format!("{text}\0").as_bytes())
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// Bind to the unnamed portal, execute, sync.
fn execute(name: &str) -> Vec<u8> {
    let bind = message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
    [bind, message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn done(tag: &str, status: u8) -> Vec<u8> {
    [complete(tag), ready(status)].concat()
}

/// Count, total in ms, unmeasured.
fn observe(exchange: &[Said], chunk: usize) -> Result<(u64, u64, u64), Blind> {
    let mut observer = Observer::new();
    let mut holds = Holds::default();
    let mut now = Instant::now();
    for said in exchange {
        match said {
            Client(bytes) => {
                for piece in bytes.chunks(chunk) {
                    observer.client(piece, &[HOT.to_owned()])?;
                }
            }
            Server(bytes, after_ms) => {
                now += MS * u32::try_from(*after_ms).unwrap();
                for piece in bytes.chunks(chunk) {
                    observer.server(piece, now, &mut holds)?;
                }
            }
        }
    }
    let taken = holds.take();
    let number = |field: &str| taken[field].as_u64().unwrap();
    Ok((number("count"), number("total_us") / 1000, number("unmeasured")))
}

/// The same in whatever pieces it comes.
fn observed(exchange: &[Said]) -> (u64, u64, u64) {
    let whole = observe(exchange, usize::MAX).unwrap();
    for chunk in [1, 2, 3, 5, 7, 64] {
        assert_eq!(observe(exchange, chunk).unwrap(), whole, "in pieces of {chunk}");
    }
    whole
}

fn connected() -> Vec<Said> {
    let ssl = [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat();
    let welcome = [message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), ready(b'I')].concat();
    vec![
        Client(ssl),
        Server(b"N".to_vec(), 1),
        Client(startup()),
        Server(welcome, 1),
    ]
}

#[test]
fn a_hold_lasts_from_the_reply_to_the_update_to_the_reply_to_the_commit() {
    let mut exchange = connected();
    // Prepared once, executed in two transactions, as a driver does.
    exchange.push(Client(parse("s1", "UPDATE tenant_config SET a=$1 WHERE id=$2")));
    exchange.push(Server(message(b'1', b""), 1));
    for _ in 0..2 {
        exchange.extend([
            Client(query("BEGIN")),
            Server(done("BEGIN", b'T'), 1),
            Client(execute("s1")),
            // Waiting for the lock is not holding it.
            Server([message(b'2', b""), done("UPDATE 1", b'T')].concat(), 500),
            Client([parse("", "INSERT INTO stop VALUES ($1)"), execute("")].concat()),
            Server(done("INSERT 0 1", b'T'), 30),
            Client(query("COMMIT")),
            Server(done("COMMIT", b'I'), 10),
        ]);
    }
    assert_eq!(observed(&exchange), (2, 80, 0));
}

#[test]
fn a_rollback_ends_a_hold_and_a_rollback_to_a_savepoint_does_not() {
    let mut exchange = connected();
    exchange.extend([
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        Client(query("SELECT id FROM tenant_config FOR UPDATE")),
        Server([message(b'D', &[0; 40]), done("SELECT 1", b'T')].concat(), 1),
        Client(query("ROLLBACK TO s")),
        Server(done("ROLLBACK", b'T'), 4),
        // A failed statement keeps the lock as well.
        Client(query("SELECT 1/0")),
        Server([message(b'E', b"SERROR\0\0"), ready(b'E')].concat(), 3),
        Client(query("ROLLBACK")),
        Server(done("ROLLBACK", b'I'), 2),
    ]);
    assert_eq!(observed(&exchange), (1, 9, 0));
}

#[test]
fn what_holds_no_row_or_only_within_one_answer_is_no_hold() {
    let update = "UPDATE tenant_config SET a=1 WHERE a IS DISTINCT FROM 1";
    let mut exchange = connected();
    exchange.extend([
        // Without a transaction.
        Client(query(update)),
        Server(done("UPDATE 1", b'I'), 1),
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        // No row met.
        Client(query(update)),
        Server(done("UPDATE 0", b'T'), 1),
        Client(query("COMMIT")),
        Server(done("COMMIT", b'I'), 5),
        // A statement of another relation.
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        Client([parse("", "UPDATE tour SET a=1"), execute("")].concat()),
        Server(done("UPDATE 1", b'T'), 1),
        Client(query("COMMIT")),
        Server(done("COMMIT", b'I'), 5),
    ]);
    assert_eq!(observed(&exchange), (0, 0, 0));
}

#[test]
fn an_upsert_that_changes_nothing_holds_the_row_all_the_same() {
    let upsert = "INSERT INTO tenant_config AS c VALUES (1) ON CONFLICT (id) DO UPDATE SET a=1 WHERE false";
    let mut exchange = connected();
    exchange.extend([
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        Client(query(upsert)),
        Server(done("INSERT 0 0", b'T'), 1),
        Client(query("COMMIT")),
        Server(done("COMMIT", b'I'), 5),
    ]);
    assert_eq!(observed(&exchange), (1, 5, 0));
}

#[test]
fn a_lock_and_its_commit_in_one_packet_are_counted_as_unmeasured() {
    let mut exchange = connected();
    exchange.extend([
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        Client([parse("", "UPDATE tenant_config SET a=1"), execute(""), query("COMMIT")].concat()),
        Server([done("UPDATE 1", b'T'), done("COMMIT", b'I')].concat(), 7),
    ]);
    assert_eq!(observed(&exchange), (0, 0, 1));
}

#[test]
fn answers_that_an_error_swallowed_are_not_waited_for() {
    let mut exchange = connected();
    exchange.extend([
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        // Two executions and one sync; the first fails, so the second is never answered.
        Client([parse("", "SELECT 1/0"), message(b'E', b"\0\0\0\0\0"), execute("")].concat()),
        Server([message(b'E', b"SERROR\0\0"), ready(b'E')].concat(), 1),
        Client(query("ROLLBACK")),
        Server(done("ROLLBACK", b'I'), 1),
        Client(query("BEGIN")),
        Server(done("BEGIN", b'T'), 1),
        Client([parse("", "UPDATE tenant_config SET a=1"), execute("")].concat()),
        Server(done("UPDATE 1", b'T'), 1),
        Client(query("COMMIT")),
        Server(done("COMMIT", b'I'), 6),
    ]);
    assert_eq!(observed(&exchange), (1, 6, 0));
}

#[test]
fn a_copy_passes_over_the_sync_before_its_rows() {
    let mut exchange = connected();
    exchange.push(Client(parse("s1", "UPDATE tenant_config SET a=$1 WHERE id=$2")));
    exchange.push(Server(message(b'1', b""), 1));
    let update = || [Client(execute("s1")), Server(done("UPDATE 1", b'T'), 1)];
    let copy = || {
        let rows = [message(b'd', &[0; 90]), message(b'c', b""), message(b'S', b"")].concat();
        [
            Client([parse("", "COPY tour FROM STDIN"), execute("")].concat()),
            Server(message(b'G', &[1, 0, 0]), 2),
            Client(rows),
            Server(done("COPY 1", b'T'), 3),
        ]
    };
    let transaction = |steps: Vec<Said>| {
        let begin = [Client(query("BEGIN")), Server(done("BEGIN", b'T'), 1)];
        let commit = [Client(query("COMMIT")), Server(done("COMMIT", b'I'), 4)];
        begin.into_iter().chain(steps).chain(commit)
    };
    exchange.extend(transaction(update().into_iter().chain(copy()).chain(copy()).collect()));
    exchange.extend(transaction(copy().into_iter().chain(copy()).chain(update()).collect()));
    // Two copies and COMMIT; COMMIT alone.
    assert_eq!(observed(&exchange), (2, 14 + 4, 0));
}

#[test]
fn an_encrypted_connection_and_another_protocol_are_not_followed() {
    let mut exchange = connected();
    exchange[1] = Server(b"S".to_vec(), 1);
    assert_eq!(observe(&exchange, 3), Err(Blind("it is encrypted")));
    let other = [Client(b"GET / HTTP/1.1\r\n\r\n".to_vec())];
    assert!(observe(&other, usize::MAX).is_err());
}

#[test]
fn what_was_taken_is_not_given_again_and_has_its_buckets() {
    let mut holds = Holds::default();
    for ms in [1, 2, 2, 40] {
        holds.add(MS * ms);
    }
    let taken = holds.take();
    assert_eq!((&taken["count"], &taken["total_us"]), (&4.into(), &45_000.into()));
    let buckets = taken["buckets"].as_array().unwrap();
    let counted: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
    assert_eq!((buckets.len(), counted), (3, 4));
    assert_eq!((&taken["p95_us"], &taken["max_us"]), (&40_000.into(), &40_000.into()));
    assert_eq!(holds.take()["count"], 0);
}
