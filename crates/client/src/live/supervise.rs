//! The task behind a client: receives from the host while there is a connection, and gets a new one when there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout};

use crate::pump::HostMessage;
use crate::{
    ApplyOutcome, ClientError, Connection, Envelope, EnvelopeEffect, Events, Notification,
};

use super::backoff::Backoff;
use super::shared::{LiveInner, LiveShared};
use super::update::UPDATES_MAX;
use super::{ConnectionEvent, HostLocator, Options, Update, Updates};

/// How long an application whose updates are full may take to read one.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the last actions may take to be sent when the client is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct ConnectionSupervisor {
    pub(super) shared: Arc<LiveShared>,
    pub(super) locator: HostLocator,
    pub(super) options: Options,
    pub(super) backoff: Backoff,
    updates: mpsc::Sender<Update>,
}

/// A connection that is set up.
pub(super) struct Established {
    pub(super) connection: Arc<Connection>,
    pub(super) events: Events,
}

/// Why the client stopped listening.
pub(super) enum ListenEnd {
    /// The connection is lost; another may be had.
    Lost(ClientError),
    /// The client has ended for good.
    Closed(ClientError),
}

impl ListenEnd {
    /// Why an attempt or a connection ended; a client whose id was taken does not take it back.
    pub(super) fn of(why: ClientError) -> Self {
        match why {
            ClientError::Superseded => Self::Closed(why),
            why => Self::Lost(why),
        }
    }

    pub(super) fn closed() -> Self {
        Self::Closed(ClientError::Closed("this client was closed".to_owned()))
    }
}

impl ConnectionSupervisor {
    /// Connects for the first time.
    pub(super) async fn start(
        shared: Arc<LiveShared>,
        locator: HostLocator,
        options: Options,
    ) -> Result<(Self, Established, Updates), ClientError> {
        let established = Self::initialize(&shared, &locator, &options).await?;
        let (updates, receiver) = mpsc::channel(UPDATES_MAX);
        let supervisor =
            Self { shared, locator, backoff: Backoff::new(options.retry_max), options, updates };
        Ok((supervisor, established, Updates { receiver }))
    }

    pub(super) async fn run(mut self, mut established: Established) {
        let why = loop {
            let connected = Instant::now();
            let why = match self.listen(&mut established).await {
                ListenEnd::Closed(why) => {
                    self.close_connection(established.connection, &why).await;
                    break why;
                }
                ListenEnd::Lost(why) => why,
            };
            self.backoff.record_connection(connected.elapsed());
            self.shared.lock().mark_disconnected(&why);
            established.connection.abort(why.clone());
            drop(established);
            let lost = Update::Connection(ConnectionEvent::Lost { why });
            let restored = match self.emit(lost).await {
                Ok(()) => self.reconnect().await,
                Err(ListenEnd::Closed(why) | ListenEnd::Lost(why)) => Err(why),
            };
            match restored {
                Ok(restored) => established = restored,
                Err(why) => break why,
            }
        };
        self.shared.lock().mark_closed(&why);
        let closed = Update::Connection(ConnectionEvent::Closed { why });
        let _ = self.updates.try_send(closed);
    }

    /// Receives from the host until the connection ends or the client is closed.
    async fn listen(&self, established: &mut Established) -> ListenEnd {
        let Established { connection, events } = established;
        let shared = &self.shared;
        let received = AtomicU64::new(0);
        let sending = async {
            loop {
                // A connection that fails is noticed by who reads from it.
                let _ = shared.flush().await;
                shared.unsent.notified().await;
            }
        };
        let silence = detect_silence(connection, &received, self.options.ping_after);
        tokio::pin!(sending, silence);
        loop {
            let message = tokio::select! {
                message = events.next_message() => message,
                why = &mut silence => Err(why),
                () = &mut sending => continue,
                () = shared.closing.notified() => return ListenEnd::closed(),
            };
            received.fetch_add(1, Ordering::Relaxed);
            let taken = match message {
                Ok(HostMessage::Notification(notification)) => self.take(notification).await,
                Ok(HostMessage::Answer(id, answer)) => {
                    let reset = self.shared.lock().complete_subscription(id, answer);
                    match reset {
                        Some(channel) => {
                            let channel = channel.to_string();
                            self.emit(Update::Reset { channel }).await
                        }
                        None => Ok(()),
                    }
                }
                Err(why) => Err(ListenEnd::of(why)),
            };
            if let Err(end) = taken {
                return end;
            }
        }
    }

    async fn take(&self, notification: Notification) -> Result<(), ListenEnd> {
        let updates = match notification.method.as_str() {
            "action" => {
                // What cannot be read cannot be mirrored: better a fresh start than a state that is wrong.
                let envelope =
                    Envelope::from_value(notification.params).map_err(ListenEnd::Lost)?;
                take_envelope(&mut self.shared.lock(), envelope)
            }
            "root/sessionRemoved" => {
                let session = notification.params["session"].as_str().unwrap_or_default();
                let disposed = self.shared.lock().forget_session(session);
                [vec![Update::Notification(notification)], disposed].concat()
            }
            _ => vec![Update::Notification(notification)],
        };
        for update in updates {
            self.emit(update).await?;
        }
        Ok(())
    }

    /// Sends an update to the application. One that wants none gets none; one that does not read them ends the client.
    pub(super) async fn emit(&self, update: Update) -> Result<(), ListenEnd> {
        let update = match self.updates.try_send(update) {
            Ok(()) | Err(TrySendError::Closed(_)) => return Ok(()),
            Err(TrySendError::Full(update)) => update,
        };
        match timeout(UPDATE_TIMEOUT, self.updates.send(update)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ListenEnd::Closed(ClientError::Overflow { events: UPDATES_MAX })),
        }
    }

    /// Sends what is unsent, and closes the connection.
    async fn close_connection(&self, connection: Arc<Connection>, why: &ClientError) {
        let _ = timeout(FLUSH_TIMEOUT, self.shared.flush()).await;
        self.shared.lock().mark_closed(why);
        match Arc::try_unwrap(connection) {
            Ok(connection) => connection.close().await,
            // A caller waits for an answer on it: it ends when they have the reason.
            Err(connection) => connection.abort(why.clone()),
        }
    }
}

fn take_envelope(inner: &mut LiveInner, envelope: Envelope) -> Vec<Update> {
    let effect = inner.replica.receive(&envelope);
    let disposed = match (envelope.action.name(), envelope.action.text("chat")) {
        ("session/chatRemoved", Some(chat)) if envelope.rejection.is_none() => {
            inner.forget_channel(chat)
        }
        _ => Vec::new(), // nothing else disposes of a channel
    };
    let mut updates: Vec<Update> = update_of(inner, envelope, effect).into_iter().collect();
    updates.extend(disposed);
    updates
}

/// The update for the application that an envelope gives, if it is news.
pub(super) fn update_of(
    inner: &LiveInner,
    envelope: Envelope,
    effect: EnvelopeEffect,
) -> Option<Update> {
    let is_news = match effect {
        EnvelopeEffect::Refused { channel, client_seq, action, reason } => {
            return Some(Update::Refused { channel, client_seq, action, reason });
        }
        EnvelopeEffect::NotForUs => false,
        EnvelopeEffect::Own { .. } => true,
        // An action that was in the state already, or one of a channel that was left meanwhile, is no news; one of a
        // watched channel whose kind has no state here is for the application.
        EnvelopeEffect::Foreign(ApplyOutcome::NotHeld | ApplyOutcome::Rejected) => {
            let mut watched = inner.watched.keys().map(wire::ChannelUri::as_str);
            watched.any(|channel| channel == envelope.channel)
                && inner.replica.channels().all(|held| held != envelope.channel)
        }
        EnvelopeEffect::Foreign(ApplyOutcome::Changed | ApplyOutcome::Unchanged) => true,
    };
    is_news.then(|| Update::Changed {
        channel: envelope.channel.clone(),
        envelope: Arc::new(envelope),
    })
}

/// Pings a host that sends nothing; returns when it does not answer.
async fn detect_silence(
    connection: &Connection,
    received: &AtomicU64,
    ping_after: Duration,
) -> ClientError {
    let silent_max = ping_after * 2;
    loop {
        let before = received.load(Ordering::Relaxed);
        tokio::time::sleep(ping_after).await;
        if received.load(Ordering::Relaxed) != before {
            continue;
        }
        match timeout(silent_max, connection.ping()).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return why,
            // A long message on its way out holds the ping up, but then something is received sooner or later.
            Err(_) if received.load(Ordering::Relaxed) != before => {}
            Err(_) => {
                return ClientError::Closed(format!(
                    "the host was silent for {} s",
                    (ping_after + silent_max).as_secs()
                ));
            }
        }
    }
}
