//! A histogram as text, for `#[serde(with)]`: the non-empty buckets as (µs, count), with the usual quantiles for whoever reads
//! the raw file.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::summary::histogram;

#[derive(Serialize)]
struct Written {
    unit: &'static str,
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct Read {
    buckets: Vec<(u64, u64)>,
}

pub(crate) fn serialize<S: Serializer>(histogram: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    write(histogram).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram<u64>, D::Error> {
    Ok(read(Read::deserialize(deserializer)?))
}

/// The same for a histogram that may be absent.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Histogram, Read, Serialize, Serializer, read, write};

    pub(crate) fn serialize<S: Serializer>(
        histogram: &Option<Histogram<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        histogram.as_ref().map(write).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Histogram<u64>>, D::Error> {
        Ok(Option::<Read>::deserialize(deserializer)?.map(read))
    }
}

fn write(histogram: &Histogram<u64>) -> Written {
    let buckets = histogram.iter_recorded();
    Written {
        unit: "us",
        p50: histogram.value_at_quantile(0.50),
        p95: histogram.value_at_quantile(0.95),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
        buckets: buckets
            .map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
            .collect(),
    }
}

fn read(read: Read) -> Histogram<u64> {
    let mut histogram = histogram();
    for (value, count) in read.buckets {
        histogram.saturating_record_n(value, count);
    }
    histogram
}
