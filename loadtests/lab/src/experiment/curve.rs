//! The `[[curve]]` tables of an experiment: arms that differ in one quantity, to be seen as a curve over it.

use serde::{Deserialize, Serialize};

use super::{Arm, Experiment};
use crate::duration;
use deploy::LinkName;

/// Throughput over one quantity of some arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CurveSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) x: Axis,
    /// Whose: the service (`replicas`), the link (`rtt`; `db` where nothing is said) or the variable (`setting`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<String>,
    pub(crate) arms: Vec<String>,
}

/// The quantity that a curve's arms differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Axis {
    /// Virtual users.
    Users,
    /// Requests a second of an open loop.
    Rate,
    /// Tenants that somebody works for.
    Tenants,
    /// Replicas of a service.
    Replicas,
    /// Emulated round trip of a link, milliseconds.
    Rtt,
    /// A setting of the services: a number, or a duration in milliseconds.
    Setting,
}

impl CurveSpec {
    /// What stands below the axis.
    pub(crate) fn x_label(&self) -> String {
        let of = self.of.as_deref();
        match self.x {
            Axis::Users => "users".to_owned(),
            Axis::Rate => "requests asked for, a second".to_owned(),
            Axis::Tenants => "tenants that the load works for".to_owned(),
            Axis::Replicas => format!("replicas of {}", of.unwrap_or_default()),
            Axis::Rtt => format!("round trip of the link {}, ms", of.unwrap_or(LinkName::Db.as_str())),
            Axis::Setting => of.unwrap_or_default().to_owned(),
        }
    }
}

impl Experiment {
    /// Where an arm stands on a curve.
    ///
    /// # Errors
    /// The arm says nothing of the quantity, or what it says is no number.
    pub(crate) fn x_of(&self, curve: &CurveSpec, arm: &Arm) -> Result<f64, String> {
        let of = curve.of.as_deref();
        match curve.x {
            Axis::Users => Ok(self.load_of(arm).users as f64),
            Axis::Tenants => {
                let load = self.load_of(arm);
                Ok(load.tenants.at_work(load.users) as f64)
            }
            Axis::Rate => {
                let open = self.load_of(arm).open;
                let rate = open.map(|(rate, _)| rate);
                rate.ok_or_else(|| format!("arm `{}` has no rate", arm.name))
            }
            Axis::Replicas => {
                let service = of.ok_or("of is missing: the service whose replicas are meant")?;
                let replicas = arm.replicas.get(service).or_else(|| self.common.replicas.get(service));
                Ok(f64::from(*replicas.unwrap_or(&1)))
            }
            Axis::Rtt => {
                let link = of.unwrap_or(LinkName::Db.as_str());
                let is_it = |name: &LinkName| name.as_str() == link;
                if !LinkName::ALL.iter().any(is_it) {
                    let known: Vec<&str> = LinkName::ALL.iter().map(|name| name.as_str()).collect();
                    return Err(format!("of = `{link}` is no link; known are: {}", known.join(", ")));
                }
                let mut asked = arm.rtt.iter().chain(&self.common.rtt);
                Ok(asked
                    .find(|(name, _)| is_it(name))
                    .map_or(0.0, |(_, rtt)| rtt.as_secs_f64() * 1000.0))
            }
            Axis::Setting => {
                let variable = of.ok_or("of is missing: the variable that is meant")?;
                let value = arm
                    .settings
                    .get(variable)
                    .or_else(|| self.common.settings.get(variable));
                let value = value.ok_or_else(|| format!("arm `{}` does not set {variable}", arm.name))?;
                let number = value.parse::<f64>().ok();
                let number = number.or_else(|| Some(duration::parse(value).ok()?.as_secs_f64() * 1000.0));
                number.ok_or_else(|| {
                    format!(
                        "arm `{}`: {variable} = `{value}` is neither a number nor a duration",
                        arm.name
                    )
                })
            }
        }
    }

    /// Every arm of a curve must be there and have its place on it.
    pub(super) fn check_curve(&self, curve: &CurveSpec) -> Result<(), String> {
        if curve.arms.is_empty() {
            return Err("arms is empty".to_owned());
        }
        if matches!(curve.x, Axis::Users | Axis::Rate | Axis::Tenants) && curve.of.is_some() {
            return Err("of does not go with x = `users`, x = `rate` and x = `tenants`".to_owned());
        }
        for name in &curve.arms {
            let arm = self.arms.iter().find(|arm| arm.name == *name);
            let arm = arm.ok_or_else(|| {
                format!(
                    "arms: there is no arm `{name}`; the arms are: {}",
                    self.arm_names().join(", ")
                )
            })?;
            self.x_of(curve, arm)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(x: Axis, of: Option<&str>) -> CurveSpec {
        CurveSpec {
            title: None,
            x,
            of: of.map(str::to_owned),
            arms: vec!["2 replicas".into()],
        }
    }

    #[test]
    fn an_arm_has_its_place_by_its_own_settings_and_else_by_the_common_ones() {
        let demo = Experiment::find("row-lock-demo").unwrap();
        let arm = &demo.arms[1];
        for (x, of, place) in [
            (Axis::Users, None, 10.0),
            (Axis::Tenants, None, 1.0),
            (Axis::Replicas, Some("tour-data"), 2.0),
            (Axis::Replicas, Some("gateway"), 1.0),
            (Axis::Rtt, None, 1.0),
            (Axis::Rtt, Some("redis"), 0.0),
            (Axis::Setting, Some("TOUR_DATA_DB_POOL_MAX"), 10.0),
        ] {
            assert_eq!(demo.x_of(&curve(x, of), arm).unwrap(), place, "{x:?} {of:?}");
        }
    }

    #[test]
    fn what_has_no_place_is_told() {
        let demo = Experiment::find("row-lock-demo").unwrap();
        for (x, of, told) in [
            (Axis::Replicas, None, "of is missing"),
            (Axis::Rtt, Some("cable"), "`cable` is no link"),
            (Axis::Setting, Some("TOUR_DATA_NOTHING"), "does not set"),
            (Axis::Setting, Some("TOUR_DATA_TOUCH"), "neither a number"),
            (Axis::Users, Some("tour-data"), "does not go"),
            (Axis::Tenants, Some("tour-data"), "does not go"),
            (Axis::Rate, None, "has no rate"),
        ] {
            let error = demo.check_curve(&curve(x, of)).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
