//! Our own client against a real host, through a line that is cut again and again: what it shows in the end is what a
//! new client gets, and nothing it did took effect twice.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{
    Connection, ConnectionEvent, HostLocator, HostTarget, Live, Mirror, Options, Resync, Update,
    Updates,
};
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wire::ChannelUri;
use wire::state::ChatState;

const SESSION: &str = "scripted:/cut";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^stream (\\d+)", "steps": [{"stream": {"chunks": "$1", "size": 40, "every_ms": 1}}]},
        {"when": "", "steps": [{"say": ["Hel", "lo"]}]},
    ]})
}

fn root() -> ChannelUri {
    ChannelUri::root()
}

fn session() -> ChannelUri {
    ChannelUri::parse(SESSION).unwrap()
}

/// A line between client and host that can be cut.
struct Line {
    address: SocketAddr,
    cut: tokio::sync::watch::Sender<u64>,
    host: Arc<Mutex<String>>,
    _task: JoinSet<()>,
}

impl Line {
    async fn to(host: &TestHost) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cut, is_cut) = tokio::sync::watch::channel(0);
        let host = Arc::new(Mutex::new(address_of(host)));
        let mut task = JoinSet::new();
        task.spawn(carry(listener, Arc::clone(&host), is_cut));
        Self { address, cut, host, _task: task }
    }

    fn locator(&self) -> HostLocator {
        HostLocator::from(HostTarget { url: format!("ws://{}/", self.address), token: None })
    }

    fn cut(&self) {
        self.cut.send_modify(|count| *count += 1);
    }

    fn leads_to(&self, host: &TestHost) {
        *self.host.lock().unwrap() = address_of(host);
    }
}

fn address_of(host: &TestHost) -> String {
    let address = host.url.trim_start_matches("ws://");
    address.split('/').next().unwrap().to_owned()
}

async fn carry(
    listener: TcpListener,
    host: Arc<Mutex<String>>,
    is_cut: tokio::sync::watch::Receiver<u64>,
) {
    let mut lines = JoinSet::new();
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let address = host.lock().unwrap().clone();
        let mut is_cut = is_cut.clone();
        is_cut.mark_unchanged();
        lines.spawn(async move {
            let Ok(mut far) = TcpStream::connect(address).await else { return };
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                _ = is_cut.changed() => {}
            }
        });
    }
}

async fn next(updates: &mut Updates) -> Update {
    let update = timeout(Duration::from_secs(60), updates.next()).await;
    update.expect("something happens").expect("the client lives")
}

/// Reads updates until one is as expected; the reports of all that was given up or refused on the way.
async fn until(updates: &mut Updates, mut condition: impl FnMut(&Update) -> bool) -> Vec<Update> {
    let mut reports = Vec::new();
    loop {
        let update = next(updates).await;
        if matches!(update, Update::NotResent { .. } | Update::Refused { .. }) {
            reports.push(update.clone());
        }
        if condition(&update) {
            return reports;
        }
    }
}

fn is_action(update: &Update, name: &str) -> bool {
    matches!(update, Update::Changed { envelope, .. } if envelope.action.name() == name)
}

fn is_back(update: &Update) -> bool {
    matches!(update, Update::Connection(ConnectionEvent::Restored { .. }))
}

/// The chat as a new client gets it.
async fn sent_to_an_unknown_client(host: &TestHost, chat: &ChannelUri) -> ChatState {
    let target = HostTarget { url: host.url.clone(), token: None };
    let (connection, _events) = Connection::connect(&target).await.unwrap();
    connection.initialize("stranger", &[]).await.unwrap();
    let snapshot = connection.subscribe(chat).await.unwrap().unwrap();
    let mut mirror = Mirror::default();
    mirror.take_snapshot(snapshot).unwrap();
    mirror.chat(chat.as_str()).unwrap().clone()
}

async fn open(line: &Line) -> (Live, Updates, ChannelUri) {
    let options = Options {
        subscriptions: vec![root()],
        retry_max: Duration::from_millis(200),
        ..Options::default()
    };
    let (live, mut updates) = Live::connect(line.locator(), "ann", options).await.unwrap();
    let params = json!({"channel": SESSION, "provider": "scripted"});
    live.request("createSession", params).await.unwrap();
    live.subscribe(&session()).await.unwrap();
    let chat = loop {
        let state = live.session(&session()).unwrap();
        if let Some(chat) = &state.default_chat {
            break ChannelUri::parse(chat).unwrap();
        }
        next(&mut updates).await;
    };
    live.subscribe(&chat).await.unwrap();
    (live, updates, chat)
}

fn start(id: &str, text: &str) -> Value {
    json!({
        "type": "chat/turnStarted", "turnId": id, "startedAt": "2026-01-01T00:00:00Z",
        "message": {"text": text, "origin": {"kind": "user"}},
    })
}

fn queue(id: &str) -> Value {
    json!({
        "type": "chat/pendingMessageSet", "kind": "queued", "id": id,
        "message": {"text": format!("queued {id}"), "origin": {"kind": "user"}},
    })
}

fn turns(chat: &ChatState) -> Vec<Value> {
    let turns = chat.turns.as_slice().iter();
    turns.map(|turn| turn.value()).collect()
}

#[tokio::test]
async fn a_line_cut_in_mid_stream_loses_and_doubles_nothing() {
    const CUTS: usize = 8;
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let line = Line::to(&host).await;
    let (live, mut updates, chat) = open(&line).await;
    live.dispatch(&chat, start("t1", "stream 400")).unwrap();
    let mut reports = Vec::new();
    for round in 0..CUTS {
        reports.extend(until(&mut updates, |update| is_action(update, "chat/delta")).await);
        // Some of these arrive before the cut, some are on their way, some are not sent.
        live.dispatch(&chat, queue(&format!("early-{round}"))).unwrap();
        if round % 2 == 0 {
            live.request("ping", json!({})).await.unwrap();
        }
        live.dispatch(&chat, queue(&format!("at-{round}"))).unwrap();
        line.cut();
        live.dispatch(&chat, queue(&format!("late-{round}"))).unwrap();
        reports.extend(until(&mut updates, is_back).await);
    }
    let expected = 1 + CUTS * 3;
    loop {
        let state = live.chat(&chat).unwrap();
        let is_quiet = live.read(|replica| replica.pending().count()) == 0;
        if is_quiet && state.turns.len() == expected && state.active_turn.is_none() {
            break;
        }
        drop(state);
        next(&mut updates).await;
    }
    assert_eq!(reports, []);
    let mine = live.chat(&chat).unwrap();
    let theirs = sent_to_an_unknown_client(&host, &chat).await;
    assert_eq!(turns(&mine), turns(&theirs));
    assert_eq!(mine.queued_messages, theirs.queued_messages);
    assert_eq!((mine.status, &mine.modified_at), (theirs.status, &theirs.modified_at));
    let mut texts: Vec<String> = turns(&mine)
        .iter()
        .map(|turn| turn["message"]["text"].as_str().unwrap().to_owned())
        .collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), expected, "each message became one turn");
    live.close().await;
    host.stop().await;
}

#[tokio::test]
async fn a_restarted_host_is_taken_up_again_and_a_forgotten_client_starts_anew() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let line = Line::to(&host).await;
    let (live, mut updates, chat) = open(&line).await;
    live.dispatch(&chat, start("t1", "hello")).unwrap();
    until(&mut updates, |update| is_action(update, "chat/turnComplete")).await;

    host.stop().await;
    let host = TestHost::start(data.path(), &script()).await;
    live.dispatch(&chat, start("t2", "while away")).unwrap();
    line.leads_to(&host);
    until(&mut updates, |update| {
        *update == Update::Connection(ConnectionEvent::Restored { how: Resync::Replay })
    })
    .await;
    until(&mut updates, |update| is_action(update, "chat/turnComplete")).await;

    let mine = live.chat(&chat).unwrap();
    let theirs = sent_to_an_unknown_client(&host, &chat).await;
    assert_eq!(turns(&mine), turns(&theirs));
    assert_eq!(mine.turns.len(), 2);

    host.stop().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let host = TestHost::start(elsewhere.path(), &script()).await;
    live.dispatch(&chat, start("t3", "still there?")).unwrap();
    line.leads_to(&host);
    until(&mut updates, |update| {
        *update == Update::Connection(ConnectionEvent::Restored { how: Resync::Reinitialized })
    })
    .await;
    let mut gone = Vec::new();
    let reports = until(&mut updates, |update| {
        if let Update::Gone { channel } = update {
            gone.push(channel.clone());
        }
        matches!(update, Update::NotResent { .. })
    })
    .await;
    assert_eq!(reports.len(), 1);
    assert_eq!(gone, [chat.as_str(), SESSION]);
    assert!(live.chat(&chat).is_none() && live.root().is_some());
    live.close().await;
    host.stop().await;
}
