//! The broker's queues.

use async_trait::async_trait;

use super::Probe;
use crate::events::{QueueSample, Sample};
use crate::queues::Queues;

pub(super) struct Queue(Queues);

impl Queue {
    pub(super) async fn connect(url: &str, queues: Vec<String>) -> anyhow::Result<Self> {
        Queues::connect(url, queues).await.map(Self)
    }
}

#[async_trait]
impl Probe for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let mut sample = QueueSample::default();
        for (name, depth) in self.0.look().await? {
            sample.ready.insert(name.clone(), depth.ready);
            sample.consumers.insert(name, depth.consumers);
        }
        Ok(Sample::Queue(sample))
    }
}
