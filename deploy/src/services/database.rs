//! What a service says of its database: what decides how it is made, whose tenants it is made with, and what its program
//! can be told to do to it.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_lc_rs::digest;
use serde_json::{Value, json};

use super::{Description, Wiring};
use crate::error::DeployError;
use crate::process::{Launch, run_tool};
use crate::schema::Change;
use crate::topology::Topology;

const MIGRATE_WITHIN: Duration = Duration::from_secs(60);
/// Bytes of the digest that tells snapshots apart: an arm more or less is a few of them.
const VARIANT_BYTES: usize = 4;

impl Description {
    /// Keys of the tenants that its migrations make.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        let keys = self.json["tenants"].as_array().into_iter().flatten();
        keys.filter_map(Value::as_str)
    }

    /// Tells the snapshot of its database from that of other topologies; `None` for the one that every topology has which
    /// decides nothing of it.
    pub(crate) fn variant(&self, topology: &Topology) -> Option<String> {
        let settings = self.decisive_settings(topology);
        let commands = topology.act.get(&self.service).filter(|commands| !commands.is_empty());
        if settings.is_empty() && commands.is_none() {
            return None;
        }
        let text = json!([settings, commands]).to_string();
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        let bytes = hash.as_ref().iter().take(VARIANT_BYTES);
        Some(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    /// Refuses what its program cannot be told.
    pub(crate) fn check_commands(&self, topology: &Topology) -> Result<(), DeployError> {
        let actions: Vec<Vec<&str>> = self.actions().collect();
        for command in topology.act.get(&self.service).into_iter().flatten() {
            let words: Vec<&str> = command.split_whitespace().collect();
            let fits = |action: &Vec<&str>| action.len() == words.len() && action.first() == words.first();
            if !actions.iter().any(fits) {
                let known: Vec<String> = actions.iter().map(|action| format!("`{}`", action.join(" "))).collect();
                let known = match known.as_slice() {
                    [] => "nothing".to_owned(),
                    known => known.join(", "),
                };
                return Err(DeployError::Usage(format!(
                    "{} cannot be told `{command}`; it can be told {known}",
                    self.service
                )));
            }
        }
        Ok(())
    }

    /// Refuses changes of the schema where settings have the migrations make more than one, of which the changes would reach
    /// the first, and such settings for one replica, since all of them share the database.
    pub(crate) fn check_schema(&self, topology: &Topology, changes: &[Change]) -> Result<(), DeployError> {
        let decisive = self.schema_settings();
        let replicas = topology.replica_settings.iter();
        for (replica, settings) in replicas.filter(|(replica, _)| replica.starts_with(&format!("{}-", self.service))) {
            if let Some(name) = settings.keys().find(|name| decisive.contains(name.as_str())) {
                return Err(DeployError::Usage(format!(
                    "{name} decides how the database is made, which all replicas share: set it for the whole stack, not for \
                     {replica}"
                )));
            }
        }
        let change = changes.iter().find(|change| change.service == self.service);
        if let (Some(change), Some((name, value))) = (change, self.decisive_settings(topology).first()) {
            return Err(DeployError::Usage(format!(
                "the schema change `{}` does not go with {name}={value}: it would be made in one of the schemas and not in \
                 the others; leave one of the two out",
                change.name
            )));
        }
        Ok(())
    }

    /// Applies its migrations to the database behind `url`, under the settings that decide what they make.
    pub(crate) async fn migrate(&self, url: &str, topology: &Topology, wiring: &Wiring) -> Result<(), DeployError> {
        self.tell(&["migrate"], url, topology, wiring).await
    }

    /// Does to the database behind `url` what the topology has its program told.
    pub(crate) async fn act(&self, url: &str, topology: &Topology, wiring: &Wiring) -> Result<(), DeployError> {
        for command in topology.act.get(&self.service).into_iter().flatten() {
            let words: Vec<&str> = command.split_whitespace().collect();
            self.tell(&words, url, topology, wiring).await?;
        }
        Ok(())
    }

    async fn tell(&self, words: &[&str], url: &str, topology: &Topology, wiring: &Wiring) -> Result<(), DeployError> {
        let name = format!("{} {}", self.service, words.join(" "));
        let mut tool = Launch::tool(name, self.program.clone(), words);
        tool.env = self.environment(|field| match field {
            "DB_URL" => Some(url.to_owned()),
            _ => wiring.value(field),
        });
        let settings = self.decisive_settings(topology).into_iter();
        tool.env
            .extend(settings.map(|(name, value)| (name.into(), value.into())));
        run_tool(&tool, MIGRATE_WITHIN).await.map(drop)
    }

    /// Those settings of the topology that decide what its migrations make.
    fn decisive_settings<'a>(&self, topology: &'a Topology) -> Vec<(&'a str, &'a str)> {
        let decisive = self.schema_settings();
        let settings = topology.settings_of(&self.service);
        settings.filter(|(name, _)| decisive.contains(name)).collect()
    }

    /// Names of the settings that decide what its migrations make.
    fn schema_settings(&self) -> BTreeSet<&str> {
        let names = self.json["schema_settings"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).collect()
    }

    /// Name and words of each thing that its program can be told.
    fn actions(&self) -> impl Iterator<Item = Vec<&str>> {
        let actions = self.json["actions"].as_array().into_iter().flatten();
        actions.map(|action| {
            let words = action["words"].as_array().into_iter().flatten();
            let all = std::iter::once(&action["name"]).chain(words);
            all.filter_map(Value::as_str).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        Description {
            service: "tour-data".to_owned(),
            program: "tour-data".into(),
            json: json!({
                "tenants": ["BEHNGT", "NORDEX"],
                "schema_settings": ["TOUR_DATA_SHARDS"],
                "actions": [{"name": "move-tenant", "words": ["KEY", "SHARD"]}],
            }),
        }
    }

    fn topology(settings: &[(&str, &str)], commands: &[&str]) -> Topology {
        let mut topology = Topology::standard("t");
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        topology.settings.extend(settings);
        let commands = commands.iter().map(|command| (*command).to_owned()).collect();
        topology.act.insert("tour-data".to_owned(), commands);
        topology
    }

    #[test]
    fn only_what_decides_the_contents_of_a_database_makes_another_snapshot() {
        let of = |settings: &[(&str, &str)], commands: &[&str]| description().variant(&topology(settings, commands));
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&[("TOUR_DATA_TOUCH", "none")], &[]), None);
        let shards = [("TOUR_DATA_SHARDS", "a,b")];
        let (plain, moved) = (of(&shards, &[]), of(&shards, &["move-tenant BEHNGT a"]));
        assert!(
            plain.is_some() && moved.is_some() && plain != moved,
            "{plain:?} {moved:?}"
        );
        assert_eq!(of(&shards, &[]), plain);
        let name = plain.unwrap();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
            "{name}"
        );
    }

    #[test]
    fn a_schema_that_is_made_several_times_is_not_changed_in_one_place_and_not_by_one_replica() {
        let change = |service: &str| Change {
            name: "tour-foreign-key".into(),
            service: service.into(),
            sql: String::new(),
        };
        let shards = topology(&[("TOUR_DATA_SHARDS", "a,b")], &[]);
        let check = |topology: &Topology, service| description().check_schema(topology, &[change(service)]);
        check(&topology(&[], &[]), "tour-data").unwrap();
        check(&shards, "user").unwrap();
        let error = check(&shards, "tour-data").unwrap_err();
        assert!(
            error.exit_code() == 2
                && error
                    .to_string()
                    .starts_with("the schema change `tour-foreign-key` does not go with TOUR_DATA_SHARDS=a,b"),
            "{error}"
        );

        let mut one = topology(&[], &[]);
        let own = [("TOUR_DATA_SHARDS".to_owned(), "a".to_owned())].into();
        one.replica_settings.insert("tour-data-2".into(), own);
        let error = check(&one, "user").unwrap_err();
        assert!(
            error.exit_code() == 2 && error.to_string().contains("not for tour-data-2"),
            "{error}"
        );
    }

    #[test]
    fn what_a_program_cannot_be_told_is_refused_with_what_it_can_be() {
        let check = |command: &str| description().check_commands(&topology(&[], &[command]));
        check("move-tenant BEHNGT shard_1").unwrap();
        for wrong in ["move-tenants BEHNGT shard_1", "move-tenant BEHNGT", ""] {
            let error = check(wrong).unwrap_err();
            assert!(
                error.exit_code() == 2 && error.to_string().contains("`move-tenant KEY SHARD`"),
                "{error}"
            );
        }
    }
}
