//! A disk that is full.
//!
//! RabbitMQ watches the space that is left and stops taking messages below a limit: the limit is raised above what the disk
//! has, so that its own alarm goes off. PostgreSQL watches nothing and finds out when a write fails: its data must lie on a
//! volume of its own (`--volume postgres=256MB`), which is filled to the last byte. Filling a disk that others use as well
//! is not an option.

use super::{Crashes, Heal, On, Spec, Step};
use crate::process::Process;
use crate::stack::Ground;

pub(super) static SPEC: Spec = Spec {
    name: "fill-disk",
    summary: "leaves a server no space: RabbitMQ's disk alarm goes off, PostgreSQL's volume is filled",
    crashes: Crashes::Meanwhile,
    on: On::Servers(&["postgres", "rabbitmq"], inflict),
};

fn inflict<'a>(ground: &'a Ground, server: &'a Process) -> Step<'a, Heal> {
    Box::pin(async move {
        if server.info().component == "rabbitmq" {
            let broker = ground.servers().rabbitmq.clone();
            let before = broker.leave_no_space().await?;
            let heal: Heal = Box::new(move |_| Box::pin(async move { broker.limit_space(before).await }));
            return Ok(heal);
        }
        let volume = ground.servers().postgres.volume()?;
        // A log that cannot grow ends the server; that is this fault's doing.
        server.expect_end();
        volume.fill()?;
        let (volume, server) = (volume.clone(), server.clone());
        let heal: Heal = Box::new(move |ground| {
            Box::pin(async move {
                volume.free()?;
                ground.start_again_if_ended(&server).await
            })
        });
        Ok(heal)
    })
}
