//! Waiting until the services' queues are empty.

use std::time::Duration;

use deploy::Stack;
use tokio::time::Instant;

use crate::facts::Facts;
use crate::queues::Queues;

/// A healthy consumer empties what a run leaves behind in a few seconds; the published one took ten.
const BOUND: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Waits until no message is ready in any queue that a service consumes.
///
/// # Errors
/// Messages are left after a minute, or the broker cannot be asked.
pub(super) async fn wait(stack: &Stack) -> anyhow::Result<()> {
    let deadline = Instant::now() + BOUND;
    let queues = connect(stack).await?;
    loop {
        let left = left(&queues).await?;
        if left.is_empty() {
            return queues.close().await;
        }
        if Instant::now() > deadline {
            anyhow::bail!(
                "{} after {} s: is the consumer running?",
                left.join(", "),
                BOUND.as_secs()
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Refuses a broker that still holds messages of an earlier load.
pub(super) async fn expect_empty(stack: &Stack) -> anyhow::Result<()> {
    let queues = connect(stack).await?;
    let left = left(&queues).await?;
    anyhow::ensure!(left.is_empty(), "{} from an earlier load", left.join(", "));
    queues.close().await
}

async fn connect(stack: &Stack) -> anyhow::Result<Queues> {
    Queues::connect(&stack.amqp(), Facts::of(stack).queues()).await
}

/// What is left, for people; empty when nothing is.
async fn left(queues: &Queues) -> anyhow::Result<Vec<String>> {
    let depths = queues.look().await?.into_iter().filter(|(_, depth)| depth.ready > 0);
    Ok(depths
        .map(|(name, depth)| format!("{} messages are left in the queue {name}", depth.ready))
        .collect())
}
