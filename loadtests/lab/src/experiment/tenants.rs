//! For whom the load works: one tenant, or several among whom its users are divided.

use super::{ArmLoad, Experiment};

/// Tenants of a load, and how its users are divided among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tenants {
    /// How many tenants the stack has clients for.
    pub(crate) count: u16,
    /// Share of the users that work for the first of them; the others are divided evenly. All are when absent.
    pub(crate) hot_share: Option<f64>,
}

impl Tenants {
    /// For each of so many users the number of its tenant, from 0.
    pub(crate) fn seats(&self, users: usize) -> Vec<usize> {
        let count = usize::from(self.count);
        let Some(share) = self.hot_share else {
            return (0..users).map(|user| user % count).collect();
        };
        let hot = self.hot_users(users, share);
        let others = (0..users - hot).map(|user| 1 + user % (count - 1).max(1));
        std::iter::repeat_n(0, hot).chain(others).collect()
    }

    /// Tenants that somebody works for: as many hot rows there are.
    pub(crate) fn at_work(&self, users: usize) -> usize {
        let mut seats = self.seats(users);
        seats.sort_unstable();
        seats.dedup();
        seats.len()
    }

    fn hot_users(&self, users: usize, share: f64) -> usize {
        ((users as f64 * share).round() as usize).clamp(1, users)
    }
}

impl Experiment {
    /// Whether every tenant of every arm has somebody to work for it.
    pub(super) fn check_tenants(&self) -> Result<(), String> {
        for arm in &self.arms {
            let load = self.load_of(arm);
            check(&load).map_err(|why| format!("arm `{}`: {why}", arm.name))?;
            if let Some(command) = arm.act.values().flatten().find(|command| command.trim().is_empty()) {
                return Err(format!(
                    "arm `{}`: act has an empty command {command:?}; give what the service's program is told, such as \
                     `move-tenant BEHNGT shard_1`",
                    arm.name
                ));
            }
        }
        Ok(())
    }
}

fn check(load: &ArmLoad) -> Result<(), String> {
    let Tenants { count, hot_share } = load.tenants;
    if count == 0 {
        return Err("tenants = 0: at least one is needed".to_owned());
    }
    if count > 1 && load.open.is_some() {
        return Err(format!(
            "tenants = {count} and rate: users are divided among tenants, and an open loop has none"
        ));
    }
    let Some(share) = hot_share else {
        if usize::from(count) > load.users {
            return Err(format!(
                "tenants = {count} with users = {}: a tenant would have nobody; at most as many tenants as users",
                load.users
            ));
        }
        return Ok(());
    };
    if !(share > 0.0 && share <= 1.0) {
        return Err(format!(
            "hot_share = {share}: a share above 0 and at most 1 is possible"
        ));
    }
    if count == 1 {
        return Err("hot_share goes with tenants, more than one".to_owned());
    }
    let others = load.users - load.tenants.hot_users(load.users, share);
    // With all of the users the first tenant has them by intent.
    if share < 1.0 && others < usize::from(count) - 1 {
        return Err(format!(
            "hot_share = {share} with users = {} leaves {others} for {} other tenants; at least one each is needed, or 1 for a \
             load that uses the first alone",
            load.users,
            count - 1
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(count: u16, hot_share: Option<f64>) -> Tenants {
        Tenants { count, hot_share }
    }

    #[test]
    fn users_are_divided_evenly_or_as_the_hot_share_says() {
        assert_eq!(tenants(1, None).seats(3), [0, 0, 0]);
        assert_eq!(tenants(4, None).seats(10), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
        assert_eq!(tenants(4, Some(0.6)).seats(10), [0, 0, 0, 0, 0, 0, 1, 2, 3, 1]);
        assert_eq!(tenants(40, Some(1.0)).seats(4), [0, 0, 0, 0]);
        for (tenants, users, at_work) in [
            (tenants(1, None), 10, 1),
            (tenants(4, None), 10, 4),
            (tenants(4, Some(0.7)), 10, 4),
            (tenants(40, Some(1.0)), 40, 1),
        ] {
            assert_eq!(tenants.at_work(users), at_work, "{tenants:?}");
        }
    }

    #[test]
    fn a_tenant_that_nobody_would_work_for_and_a_share_that_is_none_are_told() {
        let mut experiment = Experiment::find("row-lock-demo").unwrap();
        experiment.users = 10;
        for (count, share, told) in [
            (0, None, "at least one"),
            (11, None, "tenants = 11 with users = 10"),
            (1, Some(0.5), "goes with tenants"),
            (4, Some(0.0), "above 0"),
            (4, Some(f64::NAN), "hot_share"),
            (4, Some(0.9), "leaves 1 for 3 other tenants"),
        ] {
            experiment.arms[1].tenants = Some(count);
            experiment.arms[1].hot_share = share;
            let error = experiment.check_tenants().unwrap_err();
            assert!(error.contains("`2 replicas`") && error.contains(told), "{error}");
        }
        (experiment.arms[1].tenants, experiment.arms[1].hot_share) = (Some(40), Some(1.0));
        experiment.check_tenants().unwrap();
        experiment.arms[1].hot_share = None;
        (experiment.arms[1].tenants, experiment.arms[1].rate) = (Some(4), Some(5.0));
        assert!(experiment.check_tenants().unwrap_err().contains("open loop"));
        experiment.arms[1].rate = None;
        experiment.arms[1].act.insert("tour-data".into(), vec![" ".into()]);
        assert!(experiment.check_tenants().unwrap_err().contains("move-tenant"));
    }
}
