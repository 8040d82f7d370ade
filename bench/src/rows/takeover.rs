//! How long clients are cut off when the node that serves a thousand spaces is killed: from `kill -9` to the first action that a
//! client is replayed by the node that has taken its space. Every space has a client, and all come back at once.
//!
//! What remains of a lease is waited for first, so the floor is its TTL. Nodes take turns: the one that was killed is started
//! again and is the next to take over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use client::{Connection, Envelope, Events, HostTarget, Reconnected};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use wire::ChannelUri;

use crate::database::{Database, make_runtime};
use crate::driver::session_of;
use crate::harness::Harness;
use crate::measure::{median, percentile, spread};
use crate::node_place::NodePlace;
use crate::process::Server;
use crate::protocol;
use crate::table::Figure;

/// What nodes have.
const TTL_MS: f64 = 6_000.0;
const MORE_MS: f64 = 2_000.0;
const CLIENT: &str = "returning";
/// Who is sent away tries again after this (nodes ask for a second), and nobody tries for longer than the other.
const AGAIN: Duration = Duration::from_millis(500);
const AWAY_MAX: Duration = Duration::from_secs(90);
/// One answer of a node that lives.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Clients that open their space at the same time: a node loads eight at once.
const OPENING: usize = 8;
/// The node that was started again has said so.
const BEATS: Duration = Duration::from_secs(3);

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let count = if harness.quick { 300 } else { 1_000 };
    let runtime = make_runtime()?;
    let places = [
        NodePlace::make(harness, &database, "a", "")?,
        NodePlace::make(harness, &database, "b", "")?,
    ];
    let mut serving = places[0].start(harness)?;
    let mut other = places[1].start(harness)?;
    let tokens = database.make_spaces(count)?;
    let mut clients: Vec<ReturningClient> = tokens.into_iter().map(ReturningClient::new).collect();
    clients = run_clients(&runtime, clients, &serving, ClientTask::Open)?.0;
    let mut rounds = Vec::new();
    for round in 0..harness.rounds() {
        clients = run_clients(&runtime, clients, &serving, ClientTask::Act)?.0;
        std::thread::sleep(BEATS);
        let killed_at = Instant::now();
        drop(serving);
        let (returned, times) =
            run_clients(&runtime, clients, &other, ClientTask::Return(killed_at))?;
        ensure!(times.len() == count, "not every client came back");
        rounds.push(times);
        clients = returned;
        serving = other;
        other = places[round % 2].start(harness)?;
    }
    let at = |percent: f64| {
        let times = rounds.iter().map(|times| percentile(times, percent));
        times.collect::<Vec<f64>>()
    };
    Ok(vec![
        Figure::within(
            &format!("`kill -9` to the first replayed action, {count} spaces, p99"),
            "ms",
            median(&at(99.0)),
            TTL_MS,
            TTL_MS + MORE_MS,
            "TTL + 2 s",
        )
        .note(format!(
            "first {:.0} ms, p50 {:.0} ms, last {:.0} ms",
            median(&at(0.0)),
            median(&at(50.0)),
            median(&at(100.0))
        ))
        .note(format!("rounds: {}", spread(&at(99.0)))),
    ])
}

/// The client of a space.
struct ReturningClient {
    token: String,
    chat: Option<ChannelUri>,
    /// As far as it says it has heard.
    seen: u64,
    line: Option<(Connection, Events)>,
}

#[derive(Clone, Copy)]
enum ClientTask {
    /// Come into the space, make its session, subscribe.
    Open,
    /// Do something that is not counted as heard, so that there is something to replay.
    Act,
    /// Come back after this, and hear what was missed.
    Return(Instant),
}

/// Has all clients do the same at a node; the times of those that had one to take, in milliseconds.
fn run_clients(
    runtime: &Runtime,
    clients: Vec<ReturningClient>,
    node: &Server,
    what: ClientTask,
) -> Result<(Vec<ReturningClient>, Vec<f64>)> {
    let url = format!("ws://{}/", node.address);
    let turns = Arc::new(Semaphore::new(OPENING));
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let count = u32::try_from(clients.len().max(1))?;
        for (mut client, index) in clients.into_iter().zip(0_u32..) {
            let (url, turns) = (url.clone(), Arc::clone(&turns));
            tasks.spawn(async move {
                let time = match what {
                    ClientTask::Open => {
                        let _turn = turns.acquire().await?;
                        client.open(&url).await?;
                        None
                    }
                    ClientTask::Act => {
                        timeout(AWAY_MAX, client.act()).await??;
                        None
                    }
                    ClientTask::Return(killed_at) => {
                        client.line = None;
                        // Not all at the same moment; nobody can be served yet.
                        sleep(AGAIN * index / count).await;
                        timeout(AWAY_MAX, client.come_back(&url)).await??;
                        Some(killed_at.elapsed().as_secs_f64() * 1_000.0)
                    }
                };
                anyhow::Ok((client, time))
            });
        }
        let (mut clients, mut times) = (Vec::new(), Vec::new());
        while let Some(done) = tasks.join_next().await {
            let (client, time) = done?.context("a client of a space")?;
            clients.push(client);
            times.extend(time);
        }
        anyhow::Ok((clients, times))
    })
}

impl ReturningClient {
    fn new(token: String) -> Self {
        Self { token, chat: None, seen: 0, line: None }
    }

    async fn connect(&self, url: &str) -> Result<(Connection, Events)> {
        let target = HostTarget { url: url.to_owned(), token: Some(self.token.clone()) };
        Ok(timeout(ANSWER_MAX, Connection::connect(&target)).await??)
    }

    /// Tries until the space is open: a node that loads many at once sends some away.
    async fn open(&mut self, url: &str) -> Result<()> {
        let until = Instant::now() + AWAY_MAX;
        loop {
            let opened = timeout(ANSWER_MAX * 2, self.try_to_open(url)).await;
            match opened.map_err(anyhow::Error::from).flatten() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => sleep(AGAIN).await,
            }
        }
    }

    async fn try_to_open(&mut self, url: &str) -> Result<()> {
        let (connection, events) = self.connect(url).await?;
        connection.initialize(CLIENT, &[]).await?;
        let session = session_of("scripted", 1);
        let wish = json!({"channel": session, "provider": "scripted"});
        let made = connection.request("createSession", wish).await;
        let chat = ChannelUri::parse(&protocol::chat_of(&session))?;
        // The session may be there since an attempt before this one.
        let snapshot = match connection.subscribe(&chat).await {
            Ok(snapshot) => snapshot.context("a chat has a state")?,
            Err(error) => {
                made?;
                return Err(error.into());
            }
        };
        self.seen = snapshot.from_seq;
        self.chat = Some(chat);
        self.line = Some((connection, events));
        Ok(())
    }

    /// Writes a draft, again if it is refused, and waits until it is heard.
    async fn act(&mut self) -> Result<()> {
        let chat = self.chat.as_ref().context("it has opened its space")?;
        let (connection, events) = self.line.as_mut().context("it is connected")?;
        let text = format!("after {}", self.seen);
        let draft = json!({"text": text, "origin": {"kind": "user"}});
        let action = json!({"type": "chat/draftChanged", "draft": draft});
        connection.dispatch(chat, action.clone()).await?;
        loop {
            let event = events.next().await?;
            if event.method != "action" {
                continue;
            }
            let envelope = Envelope::from_value(event.params)?;
            if envelope.channel != chat.as_str() {
                continue;
            }
            if envelope.rejection.is_some() {
                sleep(AGAIN).await;
                connection.dispatch(chat, action.clone()).await?;
            } else if envelope.server_seq > self.seen {
                return Ok(());
            }
        }
    }

    /// Tries until it is replayed what it missed.
    async fn come_back(&mut self, url: &str) -> Result<()> {
        loop {
            if let Ok((connection, events)) = self.connect(url).await {
                let chat = self.chat.as_ref().context("it has opened its space")?;
                let channels = std::slice::from_ref(chat);
                let asked = connection.reconnect(CLIENT, self.seen, channels);
                match timeout(ANSWER_MAX, asked).await {
                    Ok(Ok(Reconnected::Replay { actions, .. })) => {
                        let last = actions.last().context("the replay is empty")?;
                        ensure!(last.server_seq > self.seen, "it was replayed what it had");
                        self.seen = last.server_seq;
                        self.line = Some((connection, events));
                        return Ok(());
                    }
                    Ok(Ok(Reconnected::Snapshot(_))) => {
                        bail!("a client got a snapshot instead of a replay")
                    }
                    // Cut off again, or the space is not there yet.
                    Ok(Err(_)) | Err(_) => {}
                }
            }
            sleep(AGAIN).await;
        }
    }
}
