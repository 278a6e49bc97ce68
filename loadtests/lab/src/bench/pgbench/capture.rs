//! What the service sends for one tour, from PostgreSQL's own log.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use deploy::Stack;
use load::Shape;
use sqlx::{AssertSqlSafe, PgPool};

use crate::bench::stack;
use crate::probes;

/// One statement as it was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// With `$1` … for its parameters.
    pub(super) text: String,
    /// `None` is NULL.
    pub(super) parameters: Vec<Option<String>>,
    /// What the server takes the parameters for, such as `uuid[]`.
    pub(super) types: Vec<String>,
}

/// More values than anything has that is no tour.
const VALUES_OF_A_TOUR: usize = 20;

/// The transactions of two tours, made one after the other. The database is restored afterwards.
pub(super) async fn two_tours(running: &mut Stack, database: &str) -> anyhow::Result<[Vec<Statement>; 2]> {
    let pool = probes::connect(&running.postgres(database)).await?;
    let processes = running.processes();
    let postgres = processes.iter().find(|process| process.component == "postgres");
    let log = postgres.context("the stack runs no postgres")?.log.clone();
    let before = std::fs::metadata(&log)
        .with_context(|| format!("cannot read {}", log.display()))?
        .len();

    log_statements(&pool, database).await?;
    pool.close().await;
    let made = two_requests(running).await;
    // The setting goes with the database that it was made for.
    running.restore(&mut |line| eprintln!("{line}")).await?;
    made?;

    let mut transactions = transactions(&added(&log, before)?)
        .into_iter()
        .filter(|statements| values(statements) > VALUES_OF_A_TOUR);
    let (Some(mut first), Some(second)) = (transactions.next(), transactions.next()) else {
        anyhow::bail!("the log {} does not show the transactions of two tours", log.display());
    };
    add_types(&mut first, &running.postgres(database)).await?;
    Ok([first, second])
}

/// Has the server prepare each statement and tell the types of its parameters, which the log does not.
async fn add_types(statements: &mut [Statement], url: &str) -> anyhow::Result<()> {
    let pool = probes::connect(url).await?;
    let mut session = pool.acquire().await?;
    for statement in statements
        .iter_mut()
        .filter(|statement| !statement.parameters.is_empty())
    {
        let prepare = format!("PREPARE of_a_tour AS {}", statement.text);
        sqlx::raw_sql(AssertSqlSafe(prepare))
            .execute(&mut *session)
            .await
            .with_context(|| format!("cannot prepare {:?}", statement.text))?;
        statement.types =
            sqlx::query_scalar("SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'of_a_tour'")
                .fetch_one(&mut *session)
                .await?;
        sqlx::raw_sql("DEALLOCATE of_a_tour").execute(&mut *session).await?;
    }
    drop(session);
    pool.close().await;
    Ok(())
}

/// Has all statements logged. Sessions take that up when they begin, so those there are are ended.
async fn log_statements(pool: &PgPool, database: &str) -> anyhow::Result<()> {
    let change = format!("ALTER DATABASE \"{database}\" SET log_statement = 'all'");
    sqlx::query(AssertSqlSafe(change)).execute(pool).await?;
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name <> current_setting('application_name')",
    )
    .execute(pool)
    .await?;
    Ok(())
}

async fn two_requests(running: &Stack) -> anyhow::Result<()> {
    let target = Arc::new(stack::tours(running)?);
    // The first ones meet connections that were ended just now, or a gateway that takes the replica for gone meanwhile.
    let few = Shape::closed(1)
        .think(Duration::from_millis(200))
        .duration(Duration::from_secs(30))
        .max_iterations(30);
    let summary = load::run(target, &few, |_| {}).await?;
    anyhow::ensure!(
        summary.ok >= 2,
        "no tours could be created to read their statements: {:?}",
        summary.failures
    );
    Ok(())
}

fn added(log: &PathBuf, from: u64) -> anyhow::Result<String> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn values(statements: &[Statement]) -> usize {
    statements.iter().map(|statement| statement.parameters.len()).sum()
}

/// Everything from BEGIN to COMMIT of each session, and every statement outside of that by itself, in order of the commits.
fn transactions(log: &str) -> Vec<Vec<Statement>> {
    let mut open: BTreeMap<String, Vec<Statement>> = BTreeMap::new();
    let mut done = Vec::new();
    for Entry {
        session,
        severity,
        text,
    } in entries(log)
    {
        let statement = match severity {
            "LOG" => text
                .strip_prefix("statement: ")
                .or_else(|| text.strip_prefix("execute ")?.split_once(": ").map(|s| s.1)),
            _ => None,
        };
        if let Some(statement) = statement {
            let statement = Statement {
                text: statement.trim().to_owned(),
                parameters: Vec::new(),
                types: Vec::new(),
            };
            let ends = is(&statement.text, "COMMIT");
            let transaction = open.entry(session.clone()).or_default();
            // What was there and did not begin with BEGIN was a transaction by itself.
            if transaction.first().is_some_and(|first| !is(&first.text, "BEGIN")) {
                done.push(std::mem::take(transaction));
            }
            transaction.push(statement);
            if ends {
                done.extend(open.remove(&session));
            }
        } else if severity == "DETAIL"
            && let Some(parameters) = text
                .strip_prefix("parameters: ")
                .or_else(|| text.strip_prefix("Parameters: "))
            && let Some(last) = open.get_mut(&session).and_then(|transaction| transaction.last_mut())
        {
            last.parameters = parse_parameters(parameters);
        }
    }
    let alone = open
        .into_values()
        .filter(|last| last.first().is_some_and(|first| !is(&first.text, "BEGIN")));
    done.extend(alone);
    done
}

fn is(text: &str, keyword: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(keyword))
}

struct Entry<'a> {
    /// The process id in the line's prefix.
    session: String,
    severity: &'a str,
    text: String,
}

/// Lines of `… [pid] … SEVERITY:  text`, with the lines that continue them.
fn entries(log: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            if let Some(last) = entries.last_mut() {
                last.text.push('\n');
                last.text.push_str(rest);
            }
            continue;
        }
        let Some((prefix, text)) = line.split_once(":  ") else {
            continue;
        };
        let session = prefix
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
            .map(|(pid, _)| pid);
        let severity = prefix.rsplit(' ').next().unwrap_or_default();
        entries.push(Entry {
            session: session.unwrap_or_default().to_owned(),
            severity,
            text: text.to_owned(),
        });
    }
    entries
}

/// `$1 = 'it''s', $2 = NULL`.
fn parse_parameters(text: &str) -> Vec<Option<String>> {
    let mut parameters = Vec::new();
    let mut rest = text;
    while let Some((_, value)) = rest.split_once(" = ") {
        let Some(quoted) = value.strip_prefix('\'') else {
            parameters.push(None);
            rest = value.trim_start_matches("NULL");
            continue;
        };
        let mut parameter = String::new();
        let mut chars = quoted.char_indices().peekable();
        let mut end = quoted.len();
        while let Some((at, c)) = chars.next() {
            if c != '\'' {
                parameter.push(c);
            } else if chars.next_if(|(_, next)| *next == '\'').is_some() {
                parameter.push('\'');
            } else {
                end = at + 1;
                break;
            }
        }
        parameters.push(Some(parameter));
        rest = &quoted[end..];
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-01-01 10:00:00.000 UTC [7] LOG:  statement: SELECT 1
2026-01-01 10:00:00.000 UTC [7] LOG:  statement: BEGIN
2026-01-01 10:00:00.001 UTC [9] LOG:  execute sqlx_s_1: SELECT 1
2026-01-01 10:00:00.001 UTC [7] LOG:  execute sqlx_s_2: UPDATE tenant_config
\tSET tenant = $1, info = $2 WHERE id = $3
2026-01-01 10:00:00.001 UTC [7] DETAIL:  parameters: $1 = 'it''s = ''a, b''', $2 = NULL, $3 = '1'
2026-01-01 10:00:00.002 UTC [7] LOG:  statement: COMMIT
2026-01-01 10:00:00.003 UTC [8] LOG:  statement: BEGIN
";

    #[test]
    fn a_tour_in_one_statement_is_a_transaction_by_itself_and_keeps_its_values() {
        let log = "\
2026-01-01 10:00:00.000 UTC [7] LOG:  execute sqlx_s_1: WITH a AS (INSERT INTO tour VALUES ($1))
\tSELECT 1
2026-01-01 10:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'x'
2026-01-01 10:00:00.001 UTC [7] LOG:  execute sqlx_s_1: WITH a AS (INSERT INTO tour VALUES ($1))
\tSELECT 1
2026-01-01 10:00:00.001 UTC [7] DETAIL:  parameters: $1 = 'y'
";
        let told: Vec<(usize, Option<String>)> = transactions(log)
            .into_iter()
            .map(|statements| (values(&statements), statements[0].parameters[0].clone()))
            .collect();
        assert_eq!(told, [(1, Some("x".to_owned())), (1, Some("y".to_owned()))]);
    }

    #[test]
    fn a_transaction_is_one_sessions_statements_with_their_parameters() {
        let all = transactions(LOG);
        let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(lengths, [1, 3, 1], "each SELECT is one by itself");
        let texts: Vec<&str> = all[1].iter().map(|statement| statement.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "BEGIN",
                "UPDATE tenant_config\nSET tenant = $1, info = $2 WHERE id = $3",
                "COMMIT"
            ]
        );
        assert_eq!(
            all[1][1].parameters,
            [Some("it's = 'a, b'".to_owned()), None, Some("1".to_owned())]
        );
    }
}
