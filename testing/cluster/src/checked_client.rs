//! A client that comes back whenever it is cut off, to any node, and checks everything it hears.
//!
//! Checks: seqs rise; what it missed comes as a replay, never as snapshots, and begins after what it saw; nothing that anybody
//! heard is missing at the end; its mirror is what the host says. Who came while the journal could not be written, and went, is told
//! to begin anew (H-088): what it did not hear then is in the snapshot that it gets, and is not held against anybody.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use client::{Connection, Envelope, Events, HostTarget, Mirror, Reconnected};
use serde_json::{Value, json};
use testkit::rng::SeededRng;
use tokio::time::timeout;
use wire::ChannelUri;
use wire::rpc::code;

use crate::space_history::SpaceHistory;

pub(crate) const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000001";
/// A host that says nothing for so long is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(2);
/// A space is served again within the TTL of a lease; everything takes longer on a machine that others use.
const AWAY_MAX: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(100);
/// A node that is stopped takes connections and says nothing.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Where nodes are at the moment.
#[derive(Clone, Default)]
pub(crate) struct NodeUrls(Arc<Mutex<Vec<String>>>);

impl NodeUrls {
    pub(crate) fn set(&self, urls: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = urls;
    }

    /// Any but one that was tried in vain, if there are others.
    fn any_but(&self, silent: Option<&str>, rng: &mut SeededRng) -> String {
        let urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<&String> = urls.iter().filter(|url| Some(url.as_str()) != silent).collect();
        let chosen = if others.is_empty() {
            urls.first()
        } else {
            others.get(rng.index(others.len())).copied()
        };
        chosen.cloned().unwrap_or_default()
    }
}

/// One client of one space.
pub(crate) struct CheckedClient {
    pub(crate) name: String,
    pub(crate) token: String,
    pub(crate) urls: NodeUrls,
    pub(crate) rng: SeededRng,
    pub(crate) history: Arc<SpaceHistory>,
    pub(crate) mirror: Mirror,
    pub(crate) seen: Vec<u64>,
    /// What it did not hear because it had to begin anew: behind the first seq, up to the second.
    pub(crate) gaps: Vec<(u64, u64)>,
    line: Option<(Connection, Events)>,
    /// The node that did not answer last, and is not the next that is tried: a balancer would leave it out.
    silent: Option<String>,
    /// When the host said something last.
    heard_at: Instant,
    chat: Option<ChannelUri>,
}

impl CheckedClient {
    pub(crate) fn new(
        name: &str,
        token: &str,
        urls: &NodeUrls,
        rng: SeededRng,
        history: Arc<SpaceHistory>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            token: token.to_owned(),
            urls: urls.clone(),
            rng,
            history,
            mirror: Mirror::default(),
            seen: Vec::new(),
            gaps: Vec::new(),
            line: None,
            silent: None,
            heard_at: Instant::now(),
            chat: None,
        }
    }

    async fn connect(&mut self) -> Result<(Connection, Events)> {
        let target = HostTarget {
            url: self.urls.any_but(self.silent.as_deref(), &mut self.rng),
            token: Some(self.token.clone()),
        };
        let connecting = timeout(ANSWER_MAX, Connection::connect(&target)).await;
        self.silent = connecting.is_err().then_some(target.url);
        Ok(connecting.context("no answer")??)
    }

    /// Connects, until it does.
    async fn connect_somewhere(&mut self) -> Result<(Connection, Events)> {
        let until = Instant::now() + AWAY_MAX;
        let mut again = tokio::time::interval(AGAIN);
        loop {
            again.tick().await;
            match self.connect().await {
                Ok(connected) => return Ok(connected),
                Err(error) if Instant::now() >= until => {
                    return Err(error.context(format!("{} finds nobody who serves it", self.name)));
                }
                Err(_) => {}
            }
        }
    }

    fn chat(&self) -> Result<&ChannelUri> {
        self.chat.as_ref().context("the chat is open")
    }

    /// Opens the one chat of the space, making its session if it is the first.
    pub(crate) async fn open(&mut self, makes_session: bool) -> Result<()> {
        let (connection, events) = self.connect_somewhere().await?;
        connection.initialize(&self.name, &[]).await?;
        if makes_session {
            let made = json!({"channel": SESSION, "provider": "scripted"});
            connection.request("createSession", made).await?;
        }
        let session = ChannelUri::parse(SESSION).context("a session's address")?;
        let snapshot = connection.subscribe(&session).await?.context("a session")?;
        let chat = snapshot.state["defaultChat"].as_str().context("a chat")?;
        let chat = ChannelUri::parse(chat).context("a chat's address")?;
        let snapshot = connection.subscribe(&chat).await?.context("a chat")?;
        self.mirror.take_snapshot(snapshot)?;
        let left = json!({"channel": SESSION});
        connection.notify("unsubscribe", left).await?;
        self.chat = Some(chat);
        self.line = Some((connection, events));
        self.heard_at = Instant::now();
        Ok(())
    }

    fn take(&mut self, envelope: &Envelope) -> Result<()> {
        if Some(envelope.channel.as_str()) != self.chat.as_ref().map(ChannelUri::as_str) {
            return Ok(()); // what was on its way before the session was left
        }
        if envelope.rejection.is_some() {
            return Ok(()); // nothing happened: a turn was running, or the host was stopping
        }
        let seq = envelope.server_seq;
        let last = self.seen.last().copied().unwrap_or(0);
        ensure!(seq > last, "{} heard seq {seq} after {last}", self.name);
        self.history.note(envelope)?;
        self.mirror.apply(envelope);
        self.seen.push(seq);
        Ok(())
    }

    /// Listens for a while, and comes back if it is cut off.
    pub(crate) async fn listen(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let Some((connection, events)) = &mut self.line else {
                self.come_back().await?;
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left.min(SILENCE), events.next()).await {
                Ok(Ok(event)) => {
                    self.heard_at = Instant::now();
                    if event.method == "action" {
                        let envelope = Envelope::from_value(event.params)?;
                        self.take(&envelope)?;
                    }
                }
                Ok(Err(_)) => self.line = None,
                Err(_) if self.heard_at.elapsed() < SILENCE => {}
                Err(_) => {
                    // Nothing was said: either there is nothing to say, or nobody is there.
                    match timeout(SILENCE, connection.ping()).await {
                        Ok(Ok(())) => self.heard_at = Instant::now(),
                        Ok(Err(_)) | Err(_) => {
                            self.drain().await?;
                            self.line = None;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes what has arrived already.
    async fn drain(&mut self) -> Result<()> {
        let Some((_, events)) = &mut self.line else { return Ok(()) };
        let mut arrived = Vec::new();
        while let Ok(Ok(event)) = timeout(Duration::from_millis(1), events.next()).await {
            if event.method == "action" {
                arrived.push(Envelope::from_value(event.params)?);
            }
        }
        arrived.iter().try_for_each(|envelope| self.take(envelope))
    }

    async fn come_back(&mut self) -> Result<()> {
        let (began, fault) = (Instant::now(), self.history.fault());
        let chat = self.chat()?.clone();
        let mut again = tokio::time::interval(AGAIN);
        loop {
            again.tick().await;
            let (connection, events) = self.connect_somewhere().await?;
            let last = self.mirror.last_seen();
            let channels = std::slice::from_ref(&chat);
            let asked = timeout(SILENCE * 2, connection.reconnect(&self.name, last, channels));
            match asked.await {
                Ok(Ok(Reconnected::Replay { actions, missing })) => {
                    ensure!(missing.is_empty(), "{}: the chat is gone", self.name);
                    let first = actions.iter().find(|it| it.server_seq <= last);
                    ensure!(first.is_none(), "{} was replayed what it saw", self.name);
                    actions.iter().try_for_each(|it| self.take(it))?;
                    self.line = Some((connection, events));
                    self.heard_at = Instant::now();
                    self.history.note_absence(fault, began.elapsed());
                    return Ok(());
                }
                Ok(Ok(Reconnected::Snapshot(_))) => {
                    bail!("{} got snapshots instead of a replay after {last}", self.name)
                }
                Ok(Err(error)) if error.code() == Some(code::NOT_FOUND) => {
                    if self.begin_anew(connection, events).await? {
                        self.history.note_absence(fault, began.elapsed());
                        return Ok(());
                    }
                }
                // Cut off again, or the host could not read: once more.
                Ok(Err(_)) | Err(_) if began.elapsed() < AWAY_MAX => {}
                Ok(Err(error)) => return Err(error).context("it could not come back"),
                Err(_) => bail!("{} was not answered for a minute", self.name),
            }
        }
    }

    /// The host does not know it; `false`: it was cut off again.
    async fn begin_anew(&mut self, connection: Connection, events: Events) -> Result<bool> {
        let chat = self.chat()?.clone();
        let begun = async {
            connection.initialize(&self.name, &[]).await?;
            connection.subscribe(&chat).await
        };
        let snapshot = match timeout(SILENCE * 2, begun).await {
            Ok(Ok(snapshot)) => snapshot.context("a chat")?,
            Ok(Err(_)) | Err(_) => return Ok(false),
        };
        let (last, from) = (self.mirror.last_seen(), snapshot.from_seq);
        ensure!(from >= last, "{} was shown the state of {from} after {last}", self.name);
        self.mirror.take_snapshot(snapshot)?;
        self.gaps.push((last, from));
        self.history.note_beginner();
        self.heard_at = Instant::now();
        self.line = Some((connection, events));
        Ok(true)
    }

    /// Whether it heard all of this, but for what it was shown.
    pub(crate) fn has_heard(&self, seqs: &[u64]) -> bool {
        self.missing(seqs).next().is_none()
            && self.seen.iter().all(|it| seqs.binary_search(it).is_ok())
    }

    /// What it should have heard and did not.
    pub(crate) fn missing<'a>(&'a self, seqs: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        let is_shown = |seq: u64| self.gaps.iter().any(|(from, to)| *from < seq && seq <= *to);
        let seqs = seqs.iter().copied();
        seqs.filter(move |seq| self.seen.binary_search(seq).is_err() && !is_shown(*seq))
    }

    /// Whether a turn runs, as far as it knows.
    pub(crate) fn has_turn(&self) -> Result<bool> {
        let chat = self.mirror.chat(self.chat()?.as_str()).context("a chat")?;
        Ok(chat.active_turn.is_some())
    }

    /// Starts a turn, if it can be said at all.
    pub(crate) async fn start_turn(&mut self, turn: &str) -> Result<()> {
        let chat = self.chat()?.clone();
        let action = json!({"type": "chat/turnStarted", "turnId": turn,
            "startedAt": "2026-11-15T08:00:00Z",
            "message": {"text": "go", "origin": {"kind": "user"}}});
        if let Some((connection, _)) = &self.line {
            // If it is lost on its way, nobody has acknowledged it.
            let _lost = connection.dispatch(&chat, action).await;
        }
        Ok(())
    }

    /// The chat as it has it.
    pub(crate) fn state(&self) -> Result<Value> {
        let chat = self.mirror.chat(self.chat()?.as_str());
        Ok(chat.context("a chat")?.value())
    }
}
