//! What the readers saw of the tenants' configurations, judged tenant by tenant and summed up.

use std::collections::BTreeMap;

use super::ledger::Write;
use super::reader::Sighting;
use super::writes::Writes;
use super::{EXAMPLES, configuration, values};
use crate::facts::Promise;
use crate::results::AuditCheck;

/// The verdict over all tenants.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// One of each kind, with the violations of all tenants.
    pub(super) checks: Vec<AuditCheck>,
    /// Reads of values older than promised that the touch declares.
    pub(super) declared: u64,
    /// Reads under load that the promise was held against when nothing excused it any more.
    pub(super) judged: u64,
    /// For each change under load how long an older value was seen, milliseconds.
    pub(super) stale_ms: Vec<u64>,
    /// For each read how far `modifiedAt` was behind, milliseconds.
    pub(super) behind_ms: Vec<u64>,
}

/// Holds what was seen of each tenant against what was written of the same one; `meanwhile` is what happened beside that.
/// Writes that were acknowledged after `loaded_until`, milliseconds since the Unix epoch, are none of the load.
pub(super) fn judge(
    sightings: &BTreeMap<String, Vec<Sighting>>,
    promise: &Promise,
    mut acknowledged: BTreeMap<String, Vec<Write>>,
    meanwhile: &Writes,
    loaded_until: u64,
) -> Seen {
    let several = sightings.len() > 1;
    let mut all = Seen::default();
    for (tenant, sightings) in sightings {
        let writes = Writes {
            acknowledged: acknowledged.remove(tenant).unwrap_or_default(),
            ..meanwhile.clone()
        };
        let values = values::judge(sightings, promise, &writes, loaded_until);
        let times = configuration::judge(sightings, promise, &writes);
        for mut check in times.into_iter().chain(values.checks) {
            if several {
                for example in &mut check.examples {
                    *example = format!("{tenant}: {example}");
                }
            }
            all.add(check);
        }
        all.declared += values.declared;
        all.judged += values.owing;
        all.behind_ms.extend(configuration::behind(sightings, promise, &writes));
        all.stale_ms
            .extend(values::staleness(sightings, &writes.acknowledged, loaded_until));
    }
    all
}

impl Seen {
    fn add(&mut self, check: AuditCheck) {
        let Some(known) = self.checks.iter_mut().find(|known| known.name == check.name) else {
            self.checks.push(check);
            return;
        };
        known.passed &= check.passed;
        known.violations += check.violations;
        let room = EXAMPLES.saturating_sub(known.examples.len());
        known.examples.extend(check.examples.into_iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sent_ms: u64, acked_ms: u64, info: &str) -> Write {
        Write {
            sent_ms,
            acked_ms,
            info: Some(info.to_owned()),
        }
    }

    /// Both tenants have written twice, last at 40.
    fn seen(reads: [(&str, u64, &str); 3], config: &str, loaded_until: u64) -> Seen {
        let mut sightings: BTreeMap<String, Vec<Sighting>> = BTreeMap::new();
        for (tenant, at_ms, info) in reads {
            let sighting = Sighting::new(at_ms, Some(info));
            sightings.entry(tenant.to_owned()).or_default().push(sighting);
        }
        let of = |tenant: &str, info: &str| (tenant.to_owned(), vec![write(10, 20, "old"), write(30, 40, info)]);
        let acknowledged = [of("A", "a"), of("B", "b")].into();
        let promise = Promise {
            config: config.into(),
            ..Promise::default()
        };
        judge(&sightings, &promise, acknowledged, &Writes::default(), loaded_until)
    }

    #[test]
    fn each_tenant_is_held_against_its_own_writes_and_the_verdict_is_one() {
        let right = seen([("A", 50, "a"), ("B", 50, "b"), ("B", 60, "b")], "on-change", 40);
        assert!(right.checks.len() == 1 && right.checks[0].passed, "{right:?}");
        assert_eq!(right.stale_ms, [0, 0, 0, 0]);
        // The change of one tenant is none of the other's, even where it is the newest there is.
        let wrong = seen([("A", 50, "b"), ("B", 50, "b"), ("B", 60, "old")], "on-change", 40);
        let check = &wrong.checks[0];
        assert!(
            wrong.checks.len() == 1 && !check.passed && check.violations == 2,
            "{wrong:?}"
        );
        assert!(check.examples[0].starts_with("A: read at 50"), "{check:?}");
        assert!(check.examples[1].starts_with("B: read at 60"), "{check:?}");
    }

    #[test]
    fn how_late_all_tenants_are_is_counted_read_by_read_and_change_by_change() {
        let late = [("A", 60, "old"), ("B", 50, "b"), ("B", 70, "b")];
        let under_load = seen(late, "eventual(1000ms)", 40);
        assert_eq!(under_load.stale_ms, [0, 20, 0, 0]);
        assert_eq!(under_load.behind_ms, [20; 3], "modifiedAt of none has ever moved");
        let changed_afterwards = seen(late, "eventual(1000ms)", 25);
        assert_eq!(changed_afterwards.stale_ms, [0, 0]);
        assert_eq!(changed_afterwards.checks.len(), under_load.checks.len());
    }
}
