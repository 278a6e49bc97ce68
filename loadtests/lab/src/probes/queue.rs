//! The broker's queues.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;

use super::Probe;
use crate::events::{QueueSample, Sample};
use crate::queues::Queues;

/// A broker that is coming up may take a connection and not answer yet.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Queue {
    url: String,
    names: Vec<String>,
    /// Nothing after a sample that failed: the broker may have been restarted.
    queues: Option<Queues>,
}

impl Queue {
    pub(super) async fn connect(url: &str, names: Vec<String>) -> anyhow::Result<Self> {
        let queues = Some(Queues::connect(url, names.clone()).await?);
        Ok(Self {
            url: url.to_owned(),
            names,
            queues,
        })
    }
}

#[async_trait]
impl Probe for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let queues = match self.queues.take() {
            Some(queues) => queues,
            None => {
                let connecting = Queues::connect(&self.url, self.names.clone());
                tokio::time::timeout(CONNECT_WITHIN, connecting)
                    .await
                    .context("the broker does not answer")??
            }
        };
        let mut sample = QueueSample::default();
        for (name, depth) in queues.look().await? {
            sample.ready.insert(name.clone(), depth.ready);
            sample.consumers.insert(name, depth.consumers);
        }
        self.queues = Some(queues);
        Ok(Sample::Queue(sample))
    }
}
