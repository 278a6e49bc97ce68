//! What the backends of a database are doing: by state and by wait event, and how old the oldest snapshot is that one of them
//! uses. A session that only keeps a snapshot for a fault is none of the services' and counts for the latter alone.

use async_trait::async_trait;
use sqlx::PgPool;

use super::Probe;
use crate::events::{ActivitySample, Sample};

const SQL: &str = "\
SELECT coalesce(state, 'starting') AS state,
       CASE WHEN wait_event IS NULL THEN 'CPU' ELSE wait_event_type || '/' || wait_event END AS wait,
       (count(*) FILTER (WHERE application_name <> 'rowlock-deploy'))::int AS sessions,
       max(age(backend_xmin))::bigint AS snapshot_age
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname = current_database() AND application_name <> 'rowlock-lab'
GROUP BY 1, 2";

pub(super) struct Activity {
    pool: PgPool,
}

impl Activity {
    pub(super) fn new(pool: PgPool) -> Self {
        Self { pool }
    }
}

#[async_trait]
impl Probe for Activity {
    fn name(&self) -> &'static str {
        "activity"
    }

    async fn sample(&mut self) -> anyhow::Result<Sample> {
        let rows: Vec<(String, String, i32, Option<i64>)> = sqlx::query_as(SQL).fetch_all(&self.pool).await?;
        let mut sample = ActivitySample::default();
        for (state, wait, sessions, snapshot_age) in rows {
            let sessions = u32::try_from(sessions).unwrap_or(0);
            let age = snapshot_age.and_then(|age| u64::try_from(age).ok());
            sample.snapshot_age = sample.snapshot_age.max(age);
            if sessions == 0 {
                continue;
            }
            sample.backends += sessions;
            if state != "idle" {
                *sample.waits.entry(wait).or_default() += sessions;
            }
            *sample.states.entry(state).or_default() += sessions;
        }
        Ok(Sample::Activity(sample))
    }
}
