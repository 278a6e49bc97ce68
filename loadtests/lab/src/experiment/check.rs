//! What an experiment must fulfil beyond being well-formed TOML.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::published::Published;

use super::{ClaimSpec, Expect, Experiment, Metric};

/// A longer pause is a typing error, and could outlast the load.
const THINK_MAX: Duration = Duration::from_secs(60);
/// What is allowed ten times too much or too little claims nothing.
const TOLERANCE_MAX: f64 = 9.0;

impl Experiment {
    /// Checks everything that needs no running stack; the error names the key and what would be right.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_load()?;
        self.check_order()?;
        self.check_arrivals()?;
        self.check_arms()?;
        self.check_every()?;
        self.check_tenants()?;
        self.check_faults()?;
        self.check_noise_arm()?;
        for (index, curve) in self.curves.iter().enumerate() {
            self.check_curve(curve)
                .map_err(|why| format!("curve {}: {why}", index + 1))?;
        }
        for (index, claim) in self.claims.iter().enumerate() {
            self.check_claim(claim)
                .map_err(|why| format!("claim {} (`{}`): {why}", index + 1, claim.text))?;
        }
        Ok(())
    }

    fn check_load(&self) -> Result<(), String> {
        if self.rounds == 0 {
            return Err("rounds = 0: at least one round is needed".to_owned());
        }
        for users in std::iter::once(self.users).chain(self.arms.iter().filter_map(|arm| arm.users)) {
            if users == 0 || users > 1000 {
                return Err(format!("users = {users}: between 1 and 1000 are possible"));
            }
        }
        for think in std::iter::once(self.think).chain(self.arms.iter().filter_map(|arm| arm.think)) {
            if think > THINK_MAX {
                return Err(format!("think: at most {} s are possible", THINK_MAX.as_secs()));
            }
        }
        if self.duration.as_secs_f64() < 1.0 || self.duration.as_secs() > 3600 {
            return Err("duration: between 1s and 60m are possible".to_owned());
        }
        if self.warm_up.as_secs() > 600 {
            return Err("warm_up: at most 10m are possible".to_owned());
        }
        if !(0.0..=1.0).contains(&self.changes) {
            return Err(format!(
                "changes = {}: a share between 0 and 1 is possible",
                self.changes
            ));
        }
        if !self.payload_path().is_file() {
            return Err(format!(
                "payload = `{}`: there is no {}",
                self.payload,
                self.payload_path().display()
            ));
        }
        if let Some(name) = &self.published {
            known_file("published", name, &deploy::root().join("loadtests/published"), "toml")?;
        }
        Ok(())
    }

    fn check_arms(&self) -> Result<(), String> {
        if self.arms.is_empty() {
            return Err("there is no [[arm]]".to_owned());
        }
        let presets = deploy::root().join("deploy/postgres");
        known_file("common.postgres", &self.common.postgres, &presets, "conf")?;
        let mut names = BTreeSet::new();
        for arm in &self.arms {
            if arm.name.is_empty() {
                return Err("an [[arm]] has an empty name".to_owned());
            }
            if !names.insert(&arm.name) {
                return Err(format!("two arms have the name `{}`", arm.name));
            }
            if arm.reload_only && arm.postgres.is_none() {
                return Err(format!(
                    "reload_only of arm `{}`: postgres is missing, the preset that is to be reloaded",
                    arm.name
                ));
            }
            if let Some(preset) = &arm.postgres {
                known_file(&format!("postgres of arm `{}`", arm.name), preset, &presets, "conf")?;
            }
        }
        self.check_schema()
    }

    fn check_schema(&self) -> Result<(), String> {
        let known = deploy::schema_changes().map_err(|error| error.to_string())?;
        for arm in &self.arms {
            let changes = self.schema_of(arm);
            for (index, change) in changes.iter().enumerate() {
                if !known.contains(change) {
                    return Err(format!(
                        "schema of arm `{}`: `{change}` is unknown; known are: {}",
                        arm.name,
                        known.join(", ")
                    ));
                }
                if changes[..index].contains(change) {
                    return Err(format!("schema of arm `{}`: `{change}` is made twice", arm.name));
                }
            }
        }
        Ok(())
    }

    fn check_claim(&self, claim: &ClaimSpec) -> Result<(), String> {
        for name in &claim.arms {
            if !self.arms.iter().any(|arm| arm.name == *name) {
                return Err(format!(
                    "arms: there is no arm `{name}`; the arms are: {}",
                    self.arm_names().join(", ")
                ));
            }
        }
        let about_row = claim.metric == Metric::BlamedRow;
        if about_row != matches!(claim.expect, Expect::Is | Expect::IsNot) {
            return Err(
                "expect: `is` and `is-not` go with metric `blamed-row`, `at-most`, `at-least` and `near` \
                        with the others"
                    .to_owned(),
            );
        }
        if let Some(figure) = &claim.figure {
            let story = self
                .published
                .as_deref()
                .ok_or("figure needs `published`: the story it is from")?;
            Published::find(story)
                .map_err(|failure| failure.to_string())?
                .figure(figure)?;
        }
        if let Some(tolerance) = claim.tolerance {
            if claim.expect != Expect::Near {
                return Err("tolerance goes with expect = `near` only".to_owned());
            }
            if !(tolerance > 0.0 && tolerance <= TOLERANCE_MAX) {
                return Err(format!(
                    "tolerance = {tolerance}: a share above 0 and at most {TOLERANCE_MAX}, such as 0.2"
                ));
            }
        }
        let possible = if about_row { 1..=1 } else { 1..=2 };
        if !possible.contains(&claim.arms.len()) {
            return Err(format!(
                "arms: {} given; one arm is a plain value, two are a ratio, `blamed-row` takes one",
                claim.arms.len()
            ));
        }
        match (about_row, &claim.row, claim.value) {
            (true, None, _) => Err("row is missing: the relation that should be blamed".to_owned()),
            (false, _, None) => Err("value is missing: the figure to compare to".to_owned()),
            (true, Some(_), None) | (false, None, Some(_)) => Ok(()),
            (true, Some(_), Some(_)) => Err("value does not go with metric `blamed-row`".to_owned()),
            (false, Some(_), Some(_)) => Err("row goes with metric `blamed-row` only".to_owned()),
        }
    }
}

/// `NAME.ending` must lie in `folder`; otherwise the names that do are listed.
fn known_file(key: &str, name: &str, folder: &Path, ending: &str) -> Result<(), String> {
    if !name.contains('/') && folder.join(format!("{name}.{ending}")).is_file() {
        return Ok(());
    }
    let mut known: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    known.sort();
    Err(format!("{key} = `{name}` is unknown; known are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;

    const GOOD: &str = r#"
        question = "Does it?"
        users = 10
        warm_up = "1s"
        duration = "3s"
        rounds = 1
        token = "once"
        payload = "create-tour.json"
        rows_per_tour = 87
        [[arm]]
        name = "A"
        [[arm]]
        name = "B"
        replicas = { tour-data = 2 }
        [[fault]]
        kind = "kill"
        target = "redis"
        at = "1s"
        for = "500ms"
        [[claim]]
        text = "B is not faster"
        metric = "throughput"
        arms = ["B", "A"]
        expect = "at-most"
        value = 1.1
    "#;

    #[test]
    fn a_wrong_value_is_named_with_what_would_be_right() {
        assert!(Experiment::parse(GOOD, "good").is_ok());
        for (from, to, told) in [
            ("rounds = 1", "rounds = 0", &["rounds"][..]),
            (
                "users = 10",
                "users = 10\nuserz = 1",
                &["userz", "expected one of", "users"],
            ),
            ("\"once\"", "\"twice\"", &["twice", "per-iteration-timed"]),
            ("\"3s\"", "\"3\"", &["`3`", "20s"]),
            ("create-tour.json", "other.json", &["payload", "other.json"]),
            (
                "replicas = {",
                "postgres = \"tunned\"\nreplicas = {",
                &["tunned", "default", "tuned"],
            ),
            (
                "replicas = {",
                "rtt = { cable = \"1ms\" }\nreplicas = {",
                &["cable", "db"],
            ),
            (
                "replicas = {",
                "schema = [\"tour-index\"]\nreplicas = {",
                &["`B`", "`tour-index`", "tour-foreign-key"],
            ),
            (
                "replicas = {",
                "schema = [\"tour-foreign-key\", \"tour-foreign-key\"]\nreplicas = {",
                &["`B`", "twice"],
            ),
            ("name = \"B\"", "name = \"A\"", &["two arms", "`A`"]),
            ("value = 1.1", "value = 1.1\nfigure = \"x\"", &["figure", "published"]),
            ("[\"B\", \"A\"]", "[\"C\", \"A\"]", &["`C`", "`A`, `B`"]),
            ("\"at-most\"", "\"is\"", &["blamed-row"]),
            ("value = 1.1", "", &["value is missing"]),
            ("value = 1.1", "value = 1.1\ntolerance = 0.1", &["tolerance", "`near`"]),
            ("\"at-most\"", "\"near\"\ntolerance = 0", &["tolerance = 0"]),
            (
                "[[claim]]",
                "[[curve]]\nx = \"users\"\narms = [\"C\"]\n[[claim]]",
                &["curve 1", "`C`", "`A`, `B`"],
            ),
            (
                "rounds = 1",
                "rounds = 1\norder = \"baab\"",
                &["baab", "abba", "random"],
            ),
            ("rounds = 1", "rounds = 1\nseed = 7", &["seed = 7", "random"]),
            (
                "rounds = 1",
                "rounds = 1\ntenants = 11",
                &["`A`", "tenants = 11", "users = 10"],
            ),
            (
                "name = \"B\"",
                "name = \"B\"\ntenants = 4\nhot_share = 2.0",
                &["`B`", "hot_share = 2"],
            ),
            ("name = \"B\"", "name = \"B\"\ntenant = 4", &["tenant", "`tenants`"]),
            ("rounds = 1", "rounds = 1\nrate = 0", &["rate = 0", "more than 0"]),
            (
                "rounds = 1",
                "rounds = 1\nrate = 5.0\nthink = \"1s\"",
                &["think", "open loop"],
            ),
            (
                "rounds = 1",
                "rounds = 1\narrivals = \"poisson\"",
                &["arrivals", "rate"],
            ),
            (
                "name = \"B\"",
                "name = \"B\"\narrivals = \"constant\"",
                &["`B`", "rate"],
            ),
            (
                "rounds = 1",
                "rounds = 1\nexpect_preflight = \"config\"",
                &["config-digest", "front-spread"],
            ),
            ("\"kill\"", "\"kil\"", &["fault 1", "`kil`", "kill, old-snapshot"]),
            ("\"500ms\"", "\"5s\"", &["fault 1", "recovery"]),
            ("for = ", "forr = ", &["forr", "`for`"]),
            ("for = ", "arms = [\"C\"]\nfor = ", &["fault 1", "`C`", "`A`, `B`"]),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Experiment::parse(&GOOD.replacen(from, to, 1), "bad").unwrap_err();
            for part in told {
                assert!(error.contains(part), "`{to}` should be told with `{part}`: {error}");
            }
        }
    }
}
