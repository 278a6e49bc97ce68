//! Presets: named files of parameters, included by the cluster's configuration and checked against what the server says.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context, bail};
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep};

use super::{
    Postgres,
    cluster::write_for,
    normal::{Setting, agrees},
};
use crate::DeployError;

/// The include file in the data folder.
pub(super) const FILE: &str = "rowlock-preset.conf";
const RELOADED_WITHIN: Duration = Duration::from_secs(10);

/// The parameters of one file in `deploy/postgres`.
#[derive(Clone, Debug)]
pub(crate) struct Preset {
    name: String,
    /// In the order of the file; a parameter that comes twice has its last value, as in PostgreSQL.
    parameters: BTreeMap<String, String>,
    text: String,
    /// Commits that were acknowledged in so long a time before a crash may be gone after it.
    may_lose: Duration,
}

/// What became of a preset that was applied to a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// Every parameter is in force.
    InForce,
    /// A parameter needs the server restarted.
    NeedsRestart,
}

impl Preset {
    /// The preset of a server that nobody has tuned.
    pub(crate) const DEFAULT: &str = "default";

    /// Reads `deploy/postgres/<name>.conf` of the checkout.
    pub(crate) fn load(name: &str) -> Result<Self, DeployError> {
        let folder = crate::root().join("deploy/postgres");
        let known = known(&folder)?;
        if !known.iter().any(|known| known == name) {
            return Err(DeployError::Usage(format!(
                "there is no PostgreSQL preset `{name}`; there are: {}",
                known.join(", ")
            )));
        }
        let path = folder.join(format!("{name}.conf"));
        let text =
            fs::read_to_string(&path).map_err(|error| DeployError::io(format!("read {}", path.display()), error))?;
        let wrong = |error: anyhow::Error| DeployError::Usage(format!("{}: {error:#}", path.display()));
        let parameters = parse(&text).map_err(wrong)?;
        let may_lose = declared_loss(&text, &parameters).map_err(wrong)?;
        Ok(Self {
            name: name.to_owned(),
            parameters,
            text,
            may_lose,
        })
    }

    pub(crate) fn may_lose(&self) -> Duration {
        self.may_lose
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The same with one more line.
    #[cfg(test)]
    pub(super) fn with(&self, line: &str) -> Self {
        let text = format!("{}{line}\n", self.text);
        let parameters = parse(&text).unwrap();
        Self {
            parameters,
            text,
            ..self.clone()
        }
    }
}

fn known(folder: &std::path::Path) -> Result<Vec<String>, DeployError> {
    let entries = fs::read_dir(folder).map_err(|error| DeployError::io(format!("read {}", folder.display()), error))?;
    let mut known: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some(name.strip_suffix(".conf")?.to_owned())
        })
        .collect();
    known.sort_unstable();
    Ok(known)
}

pub(super) fn write(server: &Postgres, preset: &Preset) -> Result<(), DeployError> {
    write_for(server, &server.data().join(FILE), &preset.text)
}

pub(super) async fn apply(server: &Postgres, preset: &Preset) -> anyhow::Result<Applied> {
    let mut connection = server.connect("postgres").await?;
    let before = loaded_at(&mut connection).await?;
    write(server, preset)?;
    refuse_bad_file(&mut connection).await?;
    sqlx::query("SELECT pg_reload_conf()").execute(&mut connection).await?;
    // The postmaster reads the file before it tells its sessions: once this one has, a new one has as well.
    let deadline = Instant::now() + RELOADED_WITHIN;
    while loaded_at(&mut connection).await? == before {
        if Instant::now() > deadline {
            bail!(
                "the server has not reloaded its configuration within {} s",
                RELOADED_WITHIN.as_secs()
            );
        }
        sleep(Duration::from_millis(5)).await;
    }
    // Also true for a parameter that the preset before had set and this one leaves at its default.
    let pending: bool = sqlx::query_scalar("SELECT count(*) > 0 FROM pg_settings WHERE pending_restart")
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    if pending {
        return Ok(Applied::NeedsRestart);
    }
    verify(server, preset).await?;
    Ok(Applied::InForce)
}

pub(super) async fn verify(server: &Postgres, preset: &Preset) -> anyhow::Result<()> {
    let wrong = not_in_force(server, preset).await?;
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("not in force: {}", wrong.join("; "))
}

/// Parameters of the preset that the server's own account does not agree with, for people.
pub(super) async fn not_in_force(server: &Postgres, preset: &Preset) -> anyhow::Result<Vec<String>> {
    let mut connection = server.connect("postgres").await?;
    let names: Vec<&String> = preset.parameters.keys().collect();
    let rows: Vec<(String, String, Option<String>, String)> =
        sqlx::query_as("SELECT name, setting, unit, vartype FROM pg_settings WHERE name = ANY($1)")
            .bind(names)
            .fetch_all(&mut connection)
            .await?;
    let settings: BTreeMap<String, Setting> = rows
        .into_iter()
        .map(|(name, value, unit, kind)| (name, Setting { value, unit, kind }))
        .collect();
    let mut wrong = Vec::new();
    for (name, wanted) in &preset.parameters {
        let setting = settings.get(name);
        if setting.is_some_and(|setting| agrees(wanted, setting)) {
            continue;
        }
        let shown = match setting {
            Some(_) => show(&mut connection, name).await?,
            None => "unknown to this server".to_owned(),
        };
        wrong.push(format!("{name} should be {wanted} and is {shown}"));
    }
    connection.close().await?;
    Ok(wrong)
}

async fn show(connection: &mut PgConnection, name: &str) -> anyhow::Result<String> {
    Ok(sqlx::query_scalar("SELECT current_setting($1)")
        .bind(name)
        .fetch_one(connection)
        .await?)
}

async fn loaded_at(connection: &mut PgConnection) -> anyhow::Result<String> {
    Ok(sqlx::query_scalar("SELECT pg_conf_load_time()::text")
        .fetch_one(connection)
        .await?)
}

/// A reload with an error in the file is ignored as a whole, and only the log says so.
async fn refuse_bad_file(connection: &mut PgConnection) -> anyhow::Result<()> {
    let bad: Option<String> = sqlx::query_scalar(
        "SELECT string_agg(format('line %s (%s): %s', file.sourceline, file.name, file.error), '; ')
         FROM pg_file_settings AS file LEFT JOIN pg_settings AS known ON known.name = file.name
         WHERE file.sourcefile LIKE '%' || $1 AND file.error IS NOT NULL
           -- What waits for a restart is reported with the same words as a wrong value.
           AND NOT (file.error = 'setting could not be applied' AND known.context = 'postmaster')",
    )
    .bind(FILE)
    .fetch_one(connection)
    .await?;
    match bad {
        Some(bad) => bail!("{bad}"),
        None => Ok(()),
    }
}

/// `name = value` or `name value`, one a line, `#` comments, values in single quotes where they need them.
fn parse(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) =
            parse_line(line).with_context(|| format!("line {}: `{line}` is no `name = value`", number + 1))?;
        parameters.insert(name, value);
    }
    Ok(parameters)
}

/// The loss a preset declares, in a comment of its own: `# may-lose = 600ms`. One that gives up durability must.
fn declared_loss(text: &str, parameters: &BTreeMap<String, String>) -> anyhow::Result<Duration> {
    let declared = text
        .lines()
        .find_map(|line| line.trim().strip_prefix('#')?.trim().strip_prefix("may-lose"));
    if let Some(value) = declared {
        let value = value.trim_start_matches([' ', '=']).trim();
        let ms = value.strip_suffix("ms").and_then(|ms| ms.parse().ok());
        return ms
            .map(Duration::from_millis)
            .with_context(|| format!("`may-lose = {value}` is no number of milliseconds, such as 600ms"));
    }
    let off = |name: &str| {
        parameters
            .get(name)
            .is_some_and(|value| value.eq_ignore_ascii_case("off"))
    };
    if off("synchronous_commit") || off("fsync") {
        bail!(
            "it commits without waiting for the disk and does not declare what a crash may cost; \
             add a line such as `# may-lose = 600ms` (three times wal_writer_delay)"
        );
    }
    Ok(Duration::ZERO)
}

fn parse_line(line: &str) -> Option<(String, String)> {
    let split = line.find(|c: char| c == '=' || c.is_whitespace())?;
    let (name, rest) = line.split_at(split);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim();
    let value = match rest.strip_prefix('\'') {
        None => rest.split('#').next()?.trim().to_owned(),
        Some(quoted) => {
            let end = quoted.rfind('\'')?;
            let tail = quoted[end + 1..].trim();
            if !tail.is_empty() && !tail.starts_with('#') {
                return None;
            }
            quoted[..end].replace("''", "'")
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    (!value.is_empty() && name.chars().all(plain)).then(|| (name.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_read_with_comments_quotes_and_either_separator() {
        let text =
            "# why\n\nshared_buffers = 1GB  # a page cache\nlog_destination = 'stderr,jsonlog'\nfsync on\nfsync off\n";
        let parameters = parse(text).unwrap();
        assert_eq!(parameters["shared_buffers"], "1GB");
        assert_eq!(parameters["log_destination"], "stderr,jsonlog");
        assert_eq!(parameters["fsync"], "off");
    }

    #[test]
    fn a_line_that_is_no_parameter_is_named() {
        let error = parse("fsync = on\nshared_buffers\n").unwrap_err();
        assert!(format!("{error:#}").contains("line 2: `shared_buffers`"), "{error:#}");
    }

    #[test]
    fn a_preset_that_gives_up_durability_declares_what_it_may_lose() {
        let off = parse("synchronous_commit = off\n").unwrap();
        let on = parse("synchronous_commit = on\n").unwrap();
        let declared = |text: &str| declared_loss(text, &off);
        assert_eq!(declared("# may-lose = 600ms").unwrap(), Duration::from_millis(600));
        assert_eq!(declared_loss("", &on).unwrap(), Duration::ZERO);
        assert!(declared("# fast").unwrap_err().to_string().contains("may-lose"));
        assert!(declared("# may-lose = soon").unwrap_err().to_string().contains("soon"));
        assert_eq!(Preset::load("default").unwrap().may_lose(), Duration::ZERO);
        assert_eq!(Preset::load("tuned").unwrap().may_lose(), Duration::from_millis(600));
    }

    #[test]
    fn the_shipped_presets_set_the_same_parameters_so_that_each_undoes_the_other() {
        let [default, tuned] = ["default", "tuned"].map(|name| Preset::load(name).unwrap());
        assert!(default.parameters.keys().eq(tuned.parameters.keys()));
        assert_eq!(tuned.parameters["shared_buffers"], "1GB");
        assert_eq!(tuned.parameters["wal_buffers"], "64MB");
        assert_eq!(tuned.parameters["synchronous_commit"], "off");
    }

    #[test]
    fn an_unknown_preset_is_wrong_usage_that_names_the_known_ones() {
        let error = Preset::load("fast").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("default, tuned"), "{error}");
    }
}
