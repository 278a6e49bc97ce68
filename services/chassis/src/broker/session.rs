//! One connection to the broker, from its handshake to its end.

use std::{
    str::FromStr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ConnectionState, Event,
    options::{BasicPublishOptions, ConfirmSelectOptions},
    uri::AMQPUri,
};
use tokio::sync::{Notify, Semaphore};

use super::Topology;

/// From opening the socket to the last declaration.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// A peer that is silent for twice this long is given up.
const HEARTBEAT_SECONDS: u16 = 10;
/// lapin keeps 32 frames of the negotiated size as buffer, twice: RabbitMQ's 128 KiB would cost 8 MiB a connection.
const FRAME_MAX: u32 = 16 * 1024;
/// Publishes underway at once; far more than the broker's disk can confirm in the time of one of them.
const MAX_CHANNELS: usize = 64;
/// How often the state is looked at without an event: lapin reports no event when the broker closes politely.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A connection with its channels for publishing.
pub(super) struct Session {
    number: u64,
    connection: Connection,
    /// Channels nobody publishes on at the moment.
    ///
    /// A channel carries one publish at a time. lapin hands a returned message to whichever confirm comes next, so with
    /// several in flight on one channel the loss of an unroutable message would be reported to another publisher.
    idle: Mutex<Vec<Channel>>,
    /// As many channels as there may be; who comes later waits for one.
    slots: Semaphore,
}

impl Session {
    /// Connects and declares the topology; the error is for the log and for the readiness answer.
    pub(super) async fn open(uri: &AMQPUri, name: &str, topology: &Topology) -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let opening = async {
            let properties = ConnectionProperties::default().with_connection_name(name.into());
            let connection = Connection::connect_uri(uri.clone(), properties).await?;
            let channel = connection.create_channel().await?;
            topology.declare(&channel).await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            lapin::Result::Ok((connection, channel))
        };
        let (connection, channel) = tokio::time::timeout(OPEN_TIMEOUT, opening)
            .await
            .map_err(|_| format!("no connection within {OPEN_TIMEOUT:?}"))?
            .map_err(|error| error.to_string())?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            number,
            connection,
            idle: Mutex::new(vec![channel]),
            slots: Semaphore::new(MAX_CHANNELS),
        })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn health(&self) -> Result<(), String> {
        let status = self.connection.status();
        if !status.connected() {
            return Err("the connection was lost".to_owned());
        }
        if status.blocked() {
            return Err("the broker takes no messages: its memory or disk alarm is on".to_owned());
        }
        Ok(())
    }

    pub(super) async fn channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    /// Publishes one persistent, mandatory message and waits for the broker's confirm.
    ///
    /// A caller that gives up drops the channel with the call, and the broker closes it: nothing late can be taken for
    /// the confirm of the next message.
    pub(super) async fn publish(
        &self,
        exchange: &str,
        routing_key: &str,
        body: &[u8],
        properties: BasicProperties,
    ) -> lapin::Result<Confirmation> {
        let _slot = self
            .slots
            .acquire()
            .await
            .map_err(|_| lapin::ErrorKind::InvalidConnectionState(ConnectionState::Closed))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let channel = match idle {
            Some(channel) => channel,
            None => {
                let channel = self.channel().await?;
                channel.confirm_select(ConfirmSelectOptions::default()).await?;
                channel
            }
        };
        let options = BasicPublishOptions {
            mandatory: true,
            ..Default::default()
        };
        let confirmation = channel
            .basic_publish(exchange.into(), routing_key.into(), options, body, properties)
            .await?
            .await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(channel);
        Ok(confirmation)
    }

    /// Resolves when the connection is gone, with the reason.
    pub(super) async fn ended(&self, lost: &Notify) -> String {
        let mut events = self.connection.events_listener();
        let mut reason = "the connection was closed".to_owned();
        while self.connection.status().connected() {
            tokio::select! {
                event = events.next() => match event {
                    Some(Event::Error(error)) => reason = error.to_string(),
                    Some(Event::ConnectionBlocked(why)) => tracing::warn!(why, "the broker takes no more messages"),
                    Some(_) => {}
                    None => break,
                },
                () = lost.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        reason
    }

    /// Says goodbye if there is still somebody to hear it.
    pub(super) async fn close(&self) {
        let goodbye = self.connection.close(200, "the service ends".into());
        match tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "the broker connection did not close politely"),
            Err(_) => tracing::debug!("the broker did not answer the close"),
        }
    }
}

/// The broker's address with what this client negotiates: frame size, heartbeat, connect timeout.
pub(super) fn uri(text: &str) -> Result<AMQPUri, String> {
    let mut uri = AMQPUri::from_str(text)?;
    uri.query.frame_max.get_or_insert(FRAME_MAX);
    uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
    // lapin's own thread connects, and it ends only when it has an answer: without this bound each attempt towards a
    // host that swallows packets would leave a thread behind for minutes.
    uri.query
        .connection_timeout
        .get_or_insert(OPEN_TIMEOUT.as_millis() as u64);
    Ok(uri)
}
