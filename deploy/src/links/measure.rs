//! The round trip to a server as a client sees it: the median over one connection of the cheapest request it answers, in
//! the quietest of several stretches. Whatever else the machine does can only add to it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use lapin::options::BasicQosOptions;
use lapin::{Connection, ConnectionProperties};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::DeployError;
use crate::topology::LinkName;

/// Samples of which one median is taken.
const STRETCH: usize = 60;
/// Stretches; a busy moment must not cover all of them.
const STRETCHES: usize = 4;
const SAMPLES: usize = STRETCH * STRETCHES;
/// At a long distance fewer samples do: the delay dwarfs the noise.
const SAMPLE_FOR: Duration = Duration::from_millis(500);
const AT_LEAST: usize = 5;
/// The first requests pay for caches and the connection's start.
const WARM_UP: usize = 3;
const WITHIN: Duration = Duration::from_secs(30);

/// Median round trip to the server behind `url`.
pub(crate) async fn measure(link: LinkName, url: &str) -> Result<Duration, DeployError> {
    let sampled = timeout(WITHIN, async {
        match link {
            LinkName::Db => postgres(url).await,
            LinkName::Redis => redis(url).await,
            LinkName::Broker => broker(url).await,
        }
    });
    let sampled = sampled
        .await
        .unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {} s", WITHIN.as_secs())));
    sampled
        .map(|samples| quietest(&samples))
        .map_err(|error| DeployError::server(format!("measure the round trip on {link}"), error))
}

async fn postgres(url: &str) -> anyhow::Result<Vec<Duration>> {
    let mut connection = PgConnection::connect(url).await?;
    let mut samples = Samples::new();
    while samples.wants_more() {
        let began = Instant::now();
        // The simple protocol: one round trip, and no named statement, which PgBouncer would not find again.
        sqlx::raw_sql("SELECT 1").execute(&mut connection).await?;
        samples.add(began.elapsed());
    }
    connection.close().await?;
    Ok(samples.taken())
}

async fn redis(url: &str) -> anyhow::Result<Vec<Duration>> {
    // redis://:PASSWORD@HOST:PORT/DB, as the stack itself writes it.
    let rest = url
        .strip_prefix("redis://")
        .context("a Redis URL begins with redis://")?;
    let (password, address) = rest.rsplit_once('@').unwrap_or(("", rest));
    let address = address.split('/').next().unwrap_or(address);
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    stream.get_ref().set_nodelay(true)?;
    if let Some(password) = password.strip_prefix(':') {
        ask(&mut stream, &format!("AUTH {password}\r\n"), "+OK").await?;
    }
    let mut samples = Samples::new();
    while samples.wants_more() {
        let began = Instant::now();
        ask(&mut stream, "PING\r\n", "+PONG").await?;
        samples.add(began.elapsed());
    }
    Ok(samples.taken())
}

async fn ask(stream: &mut BufReader<TcpStream>, request: &str, wanted: &str) -> anyhow::Result<()> {
    stream.get_mut().write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    if answer.trim_end() != wanted {
        bail!("Redis answered {:?} instead of {wanted}", answer.trim_end());
    }
    Ok(())
}

async fn broker(url: &str) -> anyhow::Result<Vec<Duration>> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let mut samples = Samples::new();
    while samples.wants_more() {
        let began = Instant::now();
        channel.basic_qos(1, BasicQosOptions::default()).await?;
        samples.add(began.elapsed());
    }
    connection.close(200, "measured".into()).await?;
    Ok(samples.taken())
}

struct Samples {
    began: Instant,
    all: Vec<Duration>,
}

impl Samples {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            all: Vec::with_capacity(SAMPLES + WARM_UP),
        }
    }

    fn wants_more(&self) -> bool {
        let taken = self.all.len();
        taken < WARM_UP + AT_LEAST || (taken < WARM_UP + SAMPLES && self.began.elapsed() < SAMPLE_FOR)
    }

    fn add(&mut self, sample: Duration) {
        self.all.push(sample);
    }

    fn taken(mut self) -> Vec<Duration> {
        self.all.split_off(WARM_UP)
    }
}

/// The lowest median of the stretches.
fn quietest(samples: &[Duration]) -> Duration {
    let medians = samples.chunks(STRETCH).map(|stretch| median(stretch.to_vec()));
    // A short last stretch counts as much as a full one.
    medians.min().unwrap_or_default()
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    let middle = samples.len() / 2;
    if samples.len() % 2 == 1 {
        samples[middle]
    } else {
        (samples[middle - 1] + samples[middle]) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_stretch_does_not_count() {
        let mut samples = vec![Duration::from_millis(1); STRETCH];
        samples.splice(..0, vec![Duration::from_millis(2); 2 * STRETCH]);
        assert_eq!(quietest(&samples), Duration::from_millis(1));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let ms = Duration::from_millis;
        assert_eq!(median(vec![ms(9), ms(1), ms(5)]), ms(5));
        assert_eq!(median(vec![ms(9), ms(1), ms(5), ms(7)]), ms(6));
    }
}
