//! What was really written, and whether what was done had its record first.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::AgentReply;
use kernel::{Batch, ChannelId, Record};
use serde_json::Value;

use crate::queue_checker::QueueChecker;

/// Replies to an agent that must have been recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Decision {
    Allowed,
    Denied,
    Reviewed,
    Ended,
    Answered,
    Steered,
    /// A steering message waits.
    SteeringSet,
}

/// Follows every batch that reached the journal.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The live channel of a URI.
    channels: BTreeMap<String, ChannelId>,
    uris: BTreeMap<ChannelId, String>,
    parents: BTreeMap<ChannelId, ChannelId>,
    /// URIs whose channel was disposed of, and that no other has taken since.
    gone: BTreeSet<String>,
    /// Chats with an open turn.
    open: BTreeMap<ChannelId, String>,
    /// How often a turn was started or resumed in a chat, and how often an agent was.
    starts: BTreeMap<ChannelId, u64>,
    runs: BTreeMap<ChannelId, u64>,
    /// How often something was recorded in a chat, and how often agents in it got it.
    decisions: BTreeMap<(ChannelId, Decision), (u64, u64)>,
    queues: BTreeMap<ChannelId, QueueChecker>,
    /// Client actions that were recorded, by client and its own number.
    pub origins: BTreeSet<(String, i64)>,
    /// How often each kind of action was recorded.
    pub kinds: BTreeMap<String, u64>,
    /// URIs of the channels in which the last batch may have moved a block.
    pub touched: BTreeSet<String>,
    pub seq: u64,
    pub violations: Vec<String>,
}

impl Ledger {
    pub fn written(&mut self, batch: &Batch) {
        self.touched.clear();
        for record in &batch.records {
            match record {
                Record::Channel(channel) => {
                    let before = self.channels.insert(channel.uri.to_string(), channel.id);
                    if before != Some(channel.id) {
                        self.gone.remove(channel.uri.as_str());
                    }
                    self.uris.insert(channel.id, channel.uri.to_string());
                    if let Some(parent) = channel.parent {
                        self.parents.insert(channel.id, parent);
                    }
                }
                Record::Action { seq, channel, envelope } => self.action(seq.0, *channel, envelope),
                Record::Dispose { channel, .. } => self.dispose(*channel),
                _ => {}
            }
        }
        if batch.seq.0 < self.seq {
            self.violations
                .push(format!("the journal's seq goes back from {} to {}", self.seq, batch.seq.0)); // H-062
        }
        self.seq = self.seq.max(batch.seq.0);
        let unsent = self.queues.values().filter_map(QueueChecker::unsent);
        self.violations.extend(unsent);
    }

    fn dispose(&mut self, channel: ChannelId) {
        let chats = self.parents.iter().filter(|(_, parent)| **parent == channel);
        let gone: Vec<ChannelId> = chats.map(|(chat, _)| *chat).chain([channel]).collect();
        for id in gone {
            self.open.remove(&id);
            self.queues.remove(&id);
            if let Some(uri) = self.uris.get(&id)
                && self.channels.get(uri) == Some(&id)
            {
                self.gone.insert(uri.clone());
            }
        }
    }

    /// URIs of the channels that are in the journal.
    pub fn live_channels(&self) -> BTreeSet<String> {
        let there = |uri: &&String| !self.is_gone(uri, self.seq);
        self.channels.keys().filter(there).cloned().collect()
    }

    /// Sessions that the last batch touched, themselves or by their chats.
    pub fn touched_sessions(&self) -> BTreeSet<String> {
        let session_of = |uri: &String| {
            let id = self.channels.get(uri)?;
            self.uris.get(self.parents.get(id).unwrap_or(id)).cloned()
        };
        self.touched.iter().filter_map(session_of).collect()
    }

    /// Whether what a client was served of this URI at this seq is of a channel that is gone. One that was created and disposed
    /// of in one step was never in the journal.
    pub fn is_gone(&self, uri: &str, served: u64) -> bool {
        let is_older = |id: &ChannelId| served < id.0; // the id is a seq that was used to create it
        self.gone.contains(uri) || self.channels.get(uri).is_none_or(is_older)
    }

    fn action(&mut self, seq: u64, channel: ChannelId, envelope: &[u8]) {
        if seq <= self.seq {
            self.violations.push(format!("seq {seq} is recorded after {}", self.seq)); // H-061
        }
        self.seq = self.seq.max(seq);
        let envelope: Value = serde_json::from_slice(envelope).expect("an envelope is JSON");
        if let (Some(client), Some(number)) =
            (envelope["origin"]["clientId"].as_str(), envelope["origin"]["clientSeq"].as_i64())
            && !self.origins.insert((client.to_owned(), number))
        {
            self.violations.push(format!("recorded twice: {envelope}"));
        }
        if let Some(why) = unreadable(&envelope) {
            self.violations.push(format!("{why}: {envelope}"));
        }
        if let Some(wrong) = self.queues.entry(channel).or_default().apply(&envelope) {
            self.violations.push(wrong);
        }
        let kind = envelope["action"]["type"].as_str().unwrap_or("");
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
        if let Some(uri) = envelope["channel"].as_str()
            && moves_blocks(kind)
        {
            self.touched.insert(uri.to_owned());
        }
        self.turn(channel, &envelope);
        if let Some(decision) = decision_of(&envelope) {
            self.decisions.entry((channel, decision)).or_default().0 += 1;
        }
    }

    fn turn(&mut self, channel: ChannelId, envelope: &Value) {
        let action = &envelope["action"];
        let turn = action["turnId"].as_str().unwrap_or("").to_owned();
        match action["type"].as_str().unwrap_or("") {
            "chat/turnStarted" | "chat/turnResume" => {
                *self.starts.entry(channel).or_default() += 1;
                if let Some(running) = self.open.insert(channel, turn) {
                    self.violations.push(format!("a turn starts while {running} runs: {envelope}")); // H-170
                }
            }
            "chat/turnComplete" | "chat/turnCancelled" | "chat/error" => {
                let running = self.open.remove(&channel);
                if running.as_ref() != Some(&turn) {
                    self.violations.push(format!("a turn ends that does not run: {envelope}")); // H-174
                }
            }
            "chat/truncated" => {
                self.open.remove(&channel); // H-237
            }
            "chat/toolCallConfirmed" | "chat/toolCallResultConfirmed" | "chat/toolCallComplete"
                if self.open.get(&channel) != Some(&turn) =>
            {
                self.violations.push(format!("a tool call of a turn that is over: {envelope}")); // G-10
            }
            _ => {}
        }
    }

    fn id(&self, chat: &str) -> ChannelId {
        self.channels.get(chat).copied().unwrap_or_default()
    }

    /// An agent is being started: is the turn it works on in the journal?
    pub fn runs(&mut self, chat: &str) {
        let id = self.id(chat);
        let runs = self.runs.entry(id).or_default();
        *runs += 1;
        if *runs > self.starts.get(&id).copied().unwrap_or(0) {
            self.violations.push(format!("an agent runs in {chat} without a recorded turn"));
        }
    }

    /// An agent gets a reply: is it in the journal?
    pub fn replied(&mut self, chat: &str, reply: &AgentReply) {
        let decision = match reply {
            AgentReply::ToolDecided { approved: true, .. } => Decision::Allowed,
            AgentReply::ToolDecided { .. } => Decision::Denied,
            AgentReply::ResultDecided { .. } => Decision::Reviewed,
            AgentReply::ToolEnded { .. } => Decision::Ended,
            AgentReply::Answered { .. } => Decision::Answered,
            AgentReply::Steered { message: None, .. }
            | AgentReply::Settings { .. }
            | AgentReply::ClientTools { .. }
            | AgentReply::Rendered { .. }
            // What is noted has no action: whether it is stored is seen in the chat's head.
            | AgentReply::ChatNoted => return,
            AgentReply::SteeringWaits { .. } => Decision::SteeringSet,
            AgentReply::Steered { .. } => Decision::Steered,
        };
        let (recorded, delivered) = self.decisions.entry((self.id(chat), decision)).or_default();
        *delivered += 1;
        if delivered > recorded {
            self.violations.push(format!("{chat}: replied without a record: {reply:?}"));
        }
    }

    /// A tool does its work, unstopped: does its turn run?
    pub fn executes(&mut self, chat: &str) {
        if !self.open.contains_key(&self.id(chat)) {
            self.violations.push(format!("a tool runs in {chat}, where no turn runs"));
        }
    }
}

/// Whether an action can begin, end or announce a block.
fn moves_blocks(kind: &str) -> bool {
    let kinds = [
        "chat/toolCall",
        "chat/input",
        "chat/turn",
        "chat/error",
        "chat/truncated",
        "session/inputNeeded",
        "session/chatRemoved",
    ];
    kinds.iter().any(|begins| kind.starts_with(begins))
}

/// What published clients could not read they would silently ignore (H-078); absent is absent, not null (H-052).
fn unreadable(envelope: &Value) -> Option<String> {
    let action = &envelope["action"];
    if matches!(action["type"].as_str(), Some("chat/delta" | "chat/reasoning")) {
        return None; // there are many, and they are made in one place
    }
    let fields = action.as_object()?;
    let by_host = envelope.get("origin").is_none();
    if by_host && let Some((field, _)) = fields.iter().find(|(_, value)| value.is_null()) {
        return Some(format!("`{field}` is null"));
    }
    wire::Action::decode(action.clone()).err().map(|why| why.to_string())
}

fn decision_of(envelope: &Value) -> Option<Decision> {
    let action = &envelope["action"];
    match action["type"].as_str()? {
        "chat/toolCallConfirmed" if action["approved"] == true => Some(Decision::Allowed),
        "chat/toolCallConfirmed" => Some(Decision::Denied),
        "chat/toolCallResultConfirmed" => Some(Decision::Reviewed),
        "chat/toolCallComplete" => Some(Decision::Ended),
        "chat/inputCompleted" => Some(Decision::Answered),
        "chat/pendingMessageRemoved" if action["kind"] == "steering" => Some(Decision::Steered),
        "chat/pendingMessageSet" if action["kind"] == "steering" => Some(Decision::SteeringSet),
        _ => None,
    }
}
