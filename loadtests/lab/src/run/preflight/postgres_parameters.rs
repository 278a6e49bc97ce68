//! PostgreSQL runs with the parameters of its preset; where the arm only reloads it, they are shown and not held against it.

use super::{Found, Scene};

pub(super) async fn check(scene: &Scene<'_>) -> anyhow::Result<Found> {
    let topology = scene.stack.topology();
    let not_in_force = scene.stack.postgres_not_in_force().await?;
    Ok(judge(
        &topology.postgres_preset,
        topology.postgres_reload_only,
        &not_in_force,
    ))
}

fn judge(preset: &str, reload_only: bool, not_in_force: &[String]) -> Found {
    let differing = not_in_force.join("; ");
    match (not_in_force.is_empty(), reload_only) {
        (true, _) => Found::good(format!("preset {preset} is in force")),
        (false, true) => Found::good(format!("preset {preset} was reloaded only, on purpose: {differing}")),
        (false, false) => Found::wrong(format!("preset {preset} is not in force: {differing}")),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn what_is_not_in_force_stops_an_arm_unless_that_is_its_point() {
        let differing = ["shared_buffers should be 1GB and is 128MB".to_owned()];
        assert!(judge("tuned", false, &[]).ok);
        assert!(judge("tuned", true, &differing).ok);
        let found = judge("tuned", false, &differing);
        assert!(!found.ok && found.says.contains("shared_buffers"), "{found:?}");
    }
}
