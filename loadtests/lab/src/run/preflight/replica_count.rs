//! Every service has the replicas the arm asks for.

use super::{Found, Scene};

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let asked = &scene.stack.topology().replicas;
    let counts: Vec<(&str, u16, usize)> = asked
        .iter()
        .map(|(service, asked)| (service.as_str(), *asked, scene.stack.admin(service).len()))
        .collect();
    Ok(judge(&counts))
}

/// Service, replicas asked for, replicas found.
fn judge(counts: &[(&str, u16, usize)]) -> Found {
    let wrong = counts.iter().filter(|(_, asked, found)| usize::from(*asked) != *found);
    let wrong: Vec<String> = wrong
        .map(|(service, asked, found)| format!("{service} has {found} replicas, the arm asks for {asked}"))
        .collect();
    if !wrong.is_empty() {
        return Found::wrong(wrong.join("; "));
    }
    let all: Vec<String> = counts
        .iter()
        .map(|(service, asked, _)| format!("{service} {asked}"))
        .collect();
    Found::good(all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_service_with_another_number_of_replicas_is_named() {
        assert!(judge(&[("user", 1, 1), ("tour-data", 2, 2)]).ok);
        let found = judge(&[("user", 1, 1), ("tour-data", 5, 1)]);
        assert!(
            !found.ok && found.says == "tour-data has 1 replicas, the arm asks for 5",
            "{found:?}"
        );
    }
}
