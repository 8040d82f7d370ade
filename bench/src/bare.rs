//! `bench bare-server`: the floor. The host's own WebSocket code, a queue for each connection, and nothing behind it: no
//! kernel, no journal. It answers what the helpers and the driver ask with bytes it made before, so that the same
//! helpers measure it and the host.
//!
//! A message `stream N SIZE EVERY_MS` makes it push N frames to every watcher, on the schedule the scripted agent
//! keeps and as large as the host's own. Without a pause it pushes 256 at a time to each connection and lets their
//! writers drain them in one flush before the next: what a server without anything to decide can do at most. Its
//! bounds for slow readers are out of the way; the host's are as shipped.
//!
//! A stamped draft is put into a frame made before and pushed at once.
//!
//! With `--relay` a message is sent to a model server instead, and what it answers is pushed as it comes (see `relay`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::{ChannelUri, Id, Incoming, Origin, action, rpc};

use crate::agent_relay::AgentRelay;
use crate::disk::{Rows, Scan};
use crate::host_api::net::{
    self, Admission, Frame, Input, Link, PeerId, QueuedInput, ServerLimits,
};
use crate::protocol::{STAMP_BYTES, Stamp};
use crate::recorder::Recorder;
use crate::relay::Relay;
use crate::schedule::{Stream, next_push};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct BareOptions {
    /// A chat that is answered with so many cached bytes.
    #[arg(long)]
    pub big_bytes: Option<usize>,
    /// Answer `subscribe` by reading the turns of this chat from a journal.
    #[arg(long, requires = "chat_id")]
    pub rows: Option<PathBuf>,
    #[arg(long)]
    pub chat_id: Option<i64>,
    /// Answer `reconnect` with so many cached bytes.
    #[arg(long)]
    pub replay_bytes: Option<usize>,
    /// Answer `reconnect` by an indexed scan of the journal's actions.
    #[arg(long, requires = "chat_id")]
    pub scan: Option<PathBuf>,
    /// The channel of a big chat.
    #[arg(long, default_value = "")]
    pub big: String,
    /// Have messages answered by the model server at this base URL.
    #[arg(long)]
    pub relay: Option<String>,
    /// Commit what is relayed to a database in this directory before it is pushed.
    #[arg(long, requires = "relay")]
    pub record: Option<PathBuf>,
    /// Have messages answered by an agent over ACP (`acp-agent`), whose lines are pushed as they come.
    #[arg(long)]
    pub relay_agent: bool,
}

struct Watcher {
    peer: PeerId,
    link: Arc<Link>,
    window_ms: u32,
    channel: String,
}

struct Bare {
    options: BareOptions,
    links: HashMap<PeerId, Arc<Link>>,
    watchers: Vec<Watcher>,
    stream: Option<Stream>,
    big: Option<Bytes>,
    replay: Option<Bytes>,
    rows: Option<Rows>,
    scan: Option<Scan>,
    /// A draft's frame and where its stamp stands.
    draft: Option<(Vec<u8>, usize)>,
    relay: Option<Relay>,
}

pub(crate) fn run(options: BareOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    std::thread::spawn(|| {
        for _ in std::io::stdin().lines() {}
        std::process::exit(0);
    });
    runtime.block_on(serve(options))
}

async fn serve(options: BareOptions) -> Result<()> {
    let limits = ServerLimits {
        outbox_frames_max: usize::MAX,
        outbox_bytes_max: usize::MAX,
        ..ServerLimits::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("ws://{}/", listener.local_addr()?);
    let (arrivals, inbox) = mpsc::channel(limits.inputs_max);
    let admission = Arc::new(Admission::new(limits, None, Vec::new(), Vec::new()));
    admission.set_ready(true);
    let bare = Bare::new(options)?;
    // Like the kernel's: a task among the connections'.
    let consumer = tokio::spawn(bare.run(inbox));
    println!("{}", json!({"url": url}));
    net::serve(listener, admission, arrivals, CancellationToken::new()).await;
    consumer.await?;
    Ok(())
}

impl Bare {
    fn new(options: BareOptions) -> Result<Self> {
        let chat = options.chat_id.unwrap_or(0);
        let rows = options.rows.as_ref().map(|data| Rows::open(data, chat)).transpose()?;
        let scan = options.scan.as_ref().map(|data| Scan::open(data, chat)).transpose()?;
        let cached = |bytes: usize| {
            let (head, tail) = (r#"{"jsonrpc":"2.0","id":2,"result":{"filler":""#, r#""}}"#);
            let mut text = Vec::with_capacity(head.len() + bytes + tail.len());
            text.extend_from_slice(head.as_bytes());
            text.resize(head.len() + bytes, b'x');
            text.extend_from_slice(tail.as_bytes());
            Bytes::from(text)
        };
        let big = options.big_bytes.map(cached);
        let replay = options.replay_bytes.map(cached);
        let recorder = options.record.as_deref().map(Recorder::start).transpose()?;
        let relay = options.relay.as_deref().map(|to| Relay::to(to, recorder)).transpose()?;
        let (links, watchers) = (HashMap::new(), Vec::new());
        Ok(Self {
            options,
            links,
            watchers,
            stream: None,
            big,
            replay,
            rows,
            scan,
            draft: None,
            relay,
        })
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<QueuedInput>) {
        loop {
            tokio::select! {
                arrival = inbox.recv() => match arrival {
                    Some(arrival) => self.take(arrival),
                    None => return,
                },
                () = next_push(&mut self.stream), if self.stream.is_some() => self.push_due(),
            }
        }
    }

    fn take(&mut self, arrival: QueuedInput) {
        match arrival {
            QueuedInput::Connected { peer, link, .. } => {
                self.links.insert(peer, link);
            }
            QueuedInput::Input(input) => self.take_input(*input),
            QueuedInput::Agent { .. } => {}
        }
    }

    fn take_input(&mut self, input: Input) {
        match input {
            Input::Disconnected { peer } => {
                self.links.remove(&peer);
                self.watchers.retain(|watcher| watcher.peer != peer);
            }
            Input::Received { peer, received } => match received.message {
                Incoming::Request { id, method, params } => {
                    self.answer(peer, &id, &method, &params)
                }
                Incoming::Notification { params, .. } => self.take_action(&params),
                Incoming::Response { .. } => {}
            },
            _ => {}
        }
    }

    fn answer(&mut self, peer: PeerId, id: &Id, method: &str, params: &Value) {
        let Some(link) = self.links.get(&peer).cloned() else { return };
        let channel = params["channel"].as_str().unwrap_or("");
        let text = match method {
            "subscribe" if channel == self.options.big && self.big.is_some() => self.big.clone(),
            "subscribe" if channel == self.options.big && self.rows.is_some() => {
                self.rows.as_mut().and_then(|rows| rows.read().ok())
            }
            "subscribe" => {
                let window_ms = params["delivery"]["maxLatencyMs"].as_u64().unwrap_or(0);
                let window_ms = u32::try_from(window_ms).unwrap_or(0);
                self.watchers.push(Watcher {
                    peer,
                    link: link.clone(),
                    window_ms,
                    channel: channel.to_owned(),
                });
                None
            }
            "reconnect" if self.scan.is_some() => {
                let above = params["lastSeenServerSeq"].as_i64().unwrap_or(0);
                self.scan.as_mut().and_then(|scan| scan.read(above).ok())
            }
            "reconnect" => self.replay.clone(),
            _ => None,
        };
        let canned = || {
            let snapshot = json!({"resource": channel, "fromSeq": 1, "state": {}});
            rpc::response(id, &json!({"serverSeq": 1, "snapshot": snapshot}))
        };
        link.push(Frame::Text(text.unwrap_or_else(canned)), 0);
    }

    /// A dispatched action: a turn that streams, or a stamped draft.
    fn take_action(&mut self, params: &Value) {
        let action = &params["action"];
        if let Some(text) = action["message"]["text"].as_str() {
            match &self.relay {
                _ if self.options.relay_agent => {
                    AgentRelay.ask(text, self.links_of(&params["channel"]));
                }
                Some(relay) => relay.ask(text, self.links_of(&params["channel"])),
                None => self.stream = Stream::parse(params, text),
            }
        } else if let Some(stamp) = action["draft"]["text"].as_str()
            && stamp.len() == STAMP_BYTES
        {
            let (frame, at) = self.draft.get_or_insert_with(|| draft_frame(params));
            frame[*at..*at + STAMP_BYTES].copy_from_slice(stamp.as_bytes());
            let frame = Bytes::copy_from_slice(frame);
            self.push(&frame);
        }
    }

    /// Who watches a channel, and with what window.
    fn links_of(&self, channel: &Value) -> Vec<(Arc<Link>, u32)> {
        let watchers = self.watchers.iter();
        let of_channel = watchers.filter(|watcher| *channel == *watcher.channel);
        of_channel.map(|watcher| (watcher.link.clone(), watcher.window_ms)).collect()
    }

    fn push_due(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let now = stream.due();
        let frame = stream.frame.clone();
        if stream.is_over() {
            self.stream = None;
        }
        // One connection after the other: its writer finds as much as possible when it wakes.
        for watcher in &self.watchers {
            for _ in 0..now {
                watcher.link.push(Frame::Text(frame.clone()), watcher.window_ms);
            }
        }
    }

    fn push(&self, frame: &Bytes) {
        for watcher in &self.watchers {
            watcher.link.push(Frame::Text(frame.clone()), watcher.window_ms);
        }
    }
}

/// The frame the host makes of a draft, once; after that only the stamp in it is replaced.
fn draft_frame(params: &Value) -> (Vec<u8>, usize) {
    let origin = Origin {
        client_id: "driver".to_owned(),
        client_seq: params["clientSeq"].as_i64().unwrap_or(0),
    };
    let channel = params["channel"].as_str().and_then(|text| ChannelUri::parse(text).ok());
    let body = params["action"].as_object().cloned().unwrap_or_default();
    let channel = channel.unwrap_or_else(ChannelUri::root);
    let frame = action::encode(&channel, &body, 1_234, Some(&origin), None).frame.to_vec();
    let at = Stamp::position(&frame).context("a draft without a stamp").unwrap_or(0);
    (frame, at)
}
