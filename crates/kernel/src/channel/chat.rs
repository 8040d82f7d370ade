//! A chat: its window of turns in memory, what a client may do in it, and what follows in its session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use agent_api::TextKind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::dispatchable::ChatAction;
use wire::reduce::Reduced;
use wire::state::{ChatState, Outcome, TurnList};
use wire::time::add_ms_to_rfc3339;
use wire::{Action, ChannelUri, Timestamp, rpc};

use super::{Body, Channel};
use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::chats::summary_of;
use crate::io::{Compacted, RunId};
use crate::load::{Memo, turns_of};
use crate::message::{not_a_user_message, size_of, too_large};
use crate::record::{ChannelId, Seq, TurnPage};
use crate::speak::Sender;
use crate::submit::{Submission, Submitted};
use crate::tool_call::of_client as tool_call;
use crate::{pending, question};

const CENTURY_MS: i64 = 100 * 366 * 24 * 3_600 * 1_000;

/// Longest turn id taken from a client, in bytes.
const TURN_ID_BYTES_MAX: usize = 256;

/// Truncates remembered for reconnects; from before an older one there are snapshots.
const CUTS_MAX: usize = 32;

/// Turn ids that look like the host's own, at most: a client need not take any.
pub(crate) const FORESEEN_MAX: usize = 1_024;

/// A chat in memory.
pub(crate) struct ChatChannel {
    pub state: Arc<ChatState>,
    pub session: ChannelUri,
    pub session_id: ChannelId,
    /// The journal's numbers of the turns in `state.turns`.
    pub ns: Vec<u64>,
    /// Visible turns lie on disk before the first of these.
    pub older: bool,
    pub next_n: u64,
    pub run: Option<Run>,
    /// The last checkpoint of the turn that can be resumed.
    pub checkpoint: Option<(String, Bytes)>,
    /// When the active turn was accepted, by the host's clock; `None` once it was resumed.
    pub accepted: Option<Timestamp>,
    /// What a worker was spawned with; handed to its turns.
    pub brief: Option<Bytes>,
    /// Of a side chat: the number of the last turn, shown nowhere, that is its context (H-144).
    pub context_n: Option<u64>,
    /// The client whose message the active turn answers.
    pub author: Option<String>,
    /// Who put which message into the queue.
    pub authors: BTreeMap<String, String>,
    /// The newest truncates: at which seq, and the number of the turn that stayed last. A replay from before one may not
    /// be possible (G-19).
    cuts: VecDeque<(u64, Option<u64>)>,
    /// The seq of the newest truncate that is not among them any more.
    cuts_forgotten: u64,
    /// The seq at which rows were last hidden: what was read before may show them still.
    pub hid_at: Seq,
    /// How deep below a chat of a user a worker works.
    pub depth: usize,
    /// Turn ids of clients that look like ones the host will make (G-26).
    pub foreseen: BTreeSet<String>,
    /// What is known of the messages that wait, by their ids.
    pub messages: BTreeMap<String, Submitted>,
    /// What the active turn's message has the host do before an agent works on it.
    pub begun: Option<Submitted>,
    /// How far back the agent remembers.
    pub compacted: Option<Compacted>,
}

/// The agent's work on the active turn.
pub(crate) struct Run {
    pub id: RunId,
    /// Response part ids by the agent's own numbers.
    pub parts: BTreeMap<u64, (String, TextKind)>,
    /// Tool calls, likewise.
    pub calls: BTreeMap<u64, Call>,
    /// Ids of input requests, likewise.
    pub asks: BTreeMap<u64, String>,
}

/// A tool call of a run, and who carries it out.
pub(crate) struct Call {
    pub id: String,
    pub by: Executor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    Agent,
    Client,
    /// The worker chat.
    Worker(ChannelUri),
}

/// What only the host knows of a chat, as the journal keeps it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Private {
    accepted: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brief: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_n: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    authors: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    foreseen: BTreeSet<String>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    cuts: VecDeque<(u64, Option<u64>)>,
    cuts_forgotten: u64,
    depth: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    messages: BTreeMap<String, Submitted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begun: Option<Submitted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compacted: Option<Compacted>,
}

impl ChatChannel {
    pub fn new(state: ChatState, session: ChannelUri, session_id: ChannelId) -> Self {
        Self {
            state: Arc::new(state),
            session,
            session_id,
            ns: Vec::new(),
            older: false,
            next_n: 0,
            run: None,
            checkpoint: None,
            accepted: None,
            brief: None,
            context_n: None,
            author: None,
            authors: BTreeMap::new(),
            foreseen: BTreeSet::new(),
            cuts: VecDeque::new(),
            cuts_forgotten: 0,
            hid_at: Seq(0),
            depth: 0,
            messages: BTreeMap::new(),
            begun: None,
            compacted: None,
        }
    }

    pub fn stored(
        state: ChatState,
        (session, session_id): (ChannelUri, ChannelId),
        ns: Vec<u64>,
        older: bool,
        next_n: u64,
        checkpoint: Option<(String, Bytes)>,
        private: &[u8],
    ) -> Self {
        let private: Private = serde_json::from_slice(private).unwrap_or_default();
        Self {
            ns,
            older,
            next_n,
            checkpoint,
            accepted: private.accepted.map(Timestamp),
            brief: private
                .brief
                .and_then(|brief| STANDARD.decode(brief).ok())
                .map(Bytes::from),
            author: private.author,
            context_n: private.context_n,
            authors: private.authors,
            foreseen: private.foreseen,
            cuts: private.cuts,
            cuts_forgotten: private.cuts_forgotten,
            depth: private.depth,
            messages: private.messages,
            begun: private.begun,
            compacted: private.compacted,
            ..Self::new(state, session, session_id)
        }
    }

    fn private(&self) -> Bytes {
        let private = Private {
            accepted: self.accepted.map(|moment| moment.0),
            brief: self.brief.as_ref().map(|brief| STANDARD.encode(brief)),
            author: self.author.clone(),
            context_n: self.context_n,
            authors: self.authors.clone(),
            foreseen: self.foreseen.clone(),
            cuts: self.cuts.clone(),
            cuts_forgotten: self.cuts_forgotten,
            depth: self.depth,
            messages: self.messages.clone(),
            begun: self.begun.clone(),
            compacted: self.compacted.clone(),
        };
        Bytes::from(rpc::to_json(&private))
    }

    pub fn turn_count(&self) -> u32 {
        u32::try_from(self.ns.len()).unwrap_or(u32::MAX)
    }

    pub fn turn_bytes(&self) -> u64 {
        self.state
            .turns
            .as_slice()
            .iter()
            .map(|turn| turn.json.len() as u64)
            .sum()
    }

    pub fn is_side_chat(&self) -> bool {
        let origin = self.state.extra.get("origin");
        origin.is_some_and(|origin| origin["kind"] == "sideChat")
    }

    /// Notes a truncate.
    pub fn cut(&mut self, at: Seq, kept_n: Option<u64>) {
        self.hid_at = at;
        self.cuts.push_back((at.0, kept_n));
        if self.cuts.len() > CUTS_MAX
            && let Some((seq, _)) = self.cuts.pop_front()
        {
            self.cuts_forgotten = seq;
        }
    }

    /// Whether a truncate above `start` named a turn that a window from `oldest_n` on does not hold.
    pub fn was_cut_below(&self, oldest_n: u64, start: Seq) -> bool {
        let mut cuts = self.cuts.iter().filter(|(seq, _)| *seq > start.0);
        self.cuts_forgotten > start.0
            || cuts.any(|(_, kept_n)| kept_n.is_some_and(|kept_n| kept_n < oldest_n))
    }

    /// Whether a truncate happened above `start` at all.
    pub fn was_cut(&self, start: Seq) -> bool {
        self.cuts.back().is_some_and(|(seq, _)| *seq > start.0)
    }

    /// The number of the oldest turn in memory.
    pub fn first_n(&self) -> u64 {
        self.ns.first().copied().unwrap_or(self.next_n)
    }

    /// Whether more turns are wanted than are in memory, and there are more, and they may fit.
    pub fn lacks(&self, turns: u32, bytes_max: u64) -> bool {
        self.older && self.turn_count() < turns && self.turn_bytes() < bytes_max
    }

    /// Whether every turn this chat ever had is in memory: nothing older, nothing hidden.
    pub fn knows_all_turns(&self) -> bool {
        self.ns.len() as u64 == self.next_n
    }

    /// Takes older turns in that end right before `before_n`, if that is where memory begins.
    pub fn prepend(&mut self, before_n: u64, page: &TurnPage) {
        if before_n != self.first_n() {
            return;
        }
        let (ns, mut turns) = turns_of(page.clone());
        turns.extend(self.state.turns.as_slice().iter().cloned());
        self.ns.splice(0..0, ns);
        self.older = page.older;
        Arc::make_mut(&mut self.state).turns = Arc::new(TurnList::new(turns));
    }
}

impl Channel {
    pub fn private(&self) -> Bytes {
        match &self.body {
            Body::Session(session) => session.private(),
            Body::Chat(chat) => chat.private(),
        }
    }
}

/// May a client do this to this chat?
pub(crate) fn validate(
    kernel: &Kernel,
    uri: &ChannelUri,
    verb: ChatAction,
    action: Action,
    client_id: &str,
    memo: &Memo,
) -> Result<Permit, Refusal> {
    let Some(chat) = kernel.chat(uri) else {
        return Err(Refusal::because("this chat is gone"));
    };
    if kernel.stopping {
        return Err(Refusal::because("the host is going down"));
    }
    let state = &*chat.state;
    match verb {
        ChatAction::TurnStarted => {
            let used = kernel.turn_id_is_used(uri, &action, memo)?;
            validate_start(kernel, chat, action, used, memo)
        }
        ChatAction::TurnCancelled => {
            if state.active_turn.as_ref().map(|turn| turn.id.as_str()) != action.text("turnId") {
                return Err(Refusal::because("no turn with this id is running")); // H-177
            }
            let duration = action.integer("duration").filter(|ms| *ms >= 0);
            let Some(duration) = duration else {
                return Err(Refusal::because(
                    "`duration` must be an integer of at least 0",
                )); // G-11
            };
            let started_at = state
                .active_turn
                .as_ref()
                .map_or("", |turn| &turn.started_at);
            if add_ms_to_rfc3339(started_at, duration).is_none() {
                return Err(Refusal::because("`duration` leads beyond the calendar"));
            }
            Ok(Permit(action))
        }
        ChatAction::TurnResume => {
            let session = kernel.session_state(&chat.session);
            if session.is_none_or(|session| session.lifecycle != "ready") {
                return Err(Refusal::because("this session is not ready"));
            }
            validate_resume(state, action)
        }
        ChatAction::DraftChanged => match action.present("draft") {
            Some(draft) if draft["origin"]["kind"] != "user" => Err(not_a_user_message()),
            Some(draft) if size_of(draft) > kernel.limits.waiting_bytes_max => {
                Err(too_large(kernel))
            }
            _ => Ok(Permit(action)),
        },
        ChatAction::IsReadChanged | ChatAction::IsArchivedChanged => Ok(Permit(action)),
        ChatAction::ToolCallConfirmed => tool_call::validate_confirmed(state, action),
        ChatAction::ToolCallComplete => tool_call::validate_complete(state, action, client_id),
        ChatAction::ToolCallResultConfirmed => tool_call::validate_result_confirmed(state, action),
        ChatAction::ToolCallContentChanged => tool_call::validate_content(state, action, client_id),
        ChatAction::InputAnswerChanged => question::validate_answer(state, action),
        ChatAction::InputCompleted => question::validate_completed(state, action),
        ChatAction::PendingMessageSet => pending::validate_set(kernel, chat, action, memo),
        ChatAction::PendingMessageRemoved => pending::validate_removed(state, action),
        ChatAction::QueuedMessagesReordered => pending::validate_reordered(state, action),
        ChatAction::Truncated => kernel.validate_truncated(uri, action, memo),
        ChatAction::WorkingDirectorySet | ChatAction::WorkingDirectoryRemoved => Err(
            Refusal::because("this agent does not take more than one working directory"),
        ),
    }
}

/// H-170, G-09, G-12.
fn validate_start(
    kernel: &Kernel,
    chat: &ChatChannel,
    mut action: Action,
    used: bool,
    memo: &Memo,
) -> Result<Permit, Refusal> {
    let state = &*chat.state;
    let turn_id = action.text("turnId").unwrap_or("");
    if turn_id.is_empty() || turn_id.len() > TURN_ID_BYTES_MAX {
        return Err(Refusal(format!(
            "`turnId` must have 1 to {TURN_ID_BYTES_MAX} bytes"
        )));
    }
    if state
        .active_turn
        .as_ref()
        .is_some_and(|turn| turn.id == turn_id)
        || used
    {
        return Err(Refusal::because("this turn id was used before"));
    }
    if state.active_turn.is_some() {
        return Err(Refusal::because("a turn is already running in this chat"));
    }
    if chat.foreseen.len() >= FORESEEN_MAX && pending::is_foreseen(turn_id, kernel.seq.0) {
        return Err(Refusal::because("ids of this form are the host's own"));
    }
    if action.present("queuedMessageId").is_some() {
        return Err(Refusal::because("only the host starts queued messages"));
    }
    // Every end of the turn adds a duration to it, so there must be room for one (H-171).
    if action
        .text("startedAt")
        .and_then(|text| add_ms_to_rfc3339(text, CENTURY_MS))
        .is_none()
    {
        return Err(Refusal::because("`startedAt` must be an RFC 3339 time"));
    }
    let Some(Value::Object(message)) = action.body.get_mut("message") else {
        return Err(Refusal::because("`message` is missing"));
    };
    kernel.check_message(chat, message, memo)?;
    Ok(Permit(action))
}

/// H-176: the latest turn, ended in an error that can be resumed, and none running.
fn validate_resume(state: &ChatState, action: Action) -> Result<Permit, Refusal> {
    if state.active_turn.is_some() {
        return Err(Refusal::because("a turn is already running in this chat"));
    }
    match state.turns.last() {
        Some(turn) if action.text("turnId") != Some(turn.id.as_str()) => {
            Err(Refusal::because("only the latest turn can be resumed"))
        }
        Some(turn) if turn.outcome == (Outcome::Error { resumable: true }) => Ok(Permit(action)),
        Some(_) => Err(Refusal::because(
            "this turn did not end in an error that can be resumed",
        )),
        None => Err(Refusal::because("there is no turn to resume")),
    }
}

impl Kernel {
    /// A client's action on a chat, already permitted, and what follows from it.
    pub(crate) fn act_on_chat(
        &mut self,
        uri: &ChannelUri,
        verb: ChatAction,
        action: Action,
        submission: Option<Submission>,
        sender: &Sender,
        memo: &Memo,
    ) {
        match verb {
            ChatAction::TurnStarted => self.start_turn(uri, action, submission, sender),
            ChatAction::TurnCancelled => self.cancel_turn(uri, action, sender),
            ChatAction::TurnResume => self.resume_turn(uri, action, sender),
            ChatAction::PendingMessageSet => self.set_pending(uri, action, submission, sender),
            ChatAction::Truncated => self.truncate(uri, action, sender, memo),
            ChatAction::ToolCallConfirmed => self.confirm_tool(uri, action, sender),
            ChatAction::ToolCallComplete => self.client_completed(uri, action, sender),
            ChatAction::ToolCallResultConfirmed => self.confirm_result(uri, action, sender),
            ChatAction::InputCompleted => self.answer_question(uri, action, sender),
            ChatAction::DraftChanged
            | ChatAction::IsReadChanged
            | ChatAction::IsArchivedChanged
            | ChatAction::ToolCallContentChanged
            | ChatAction::InputAnswerChanged
            | ChatAction::PendingMessageRemoved
            | ChatAction::QueuedMessagesReordered
            | ChatAction::WorkingDirectorySet
            | ChatAction::WorkingDirectoryRemoved => {
                if self.act(uri, action, Some(sender)) == Reduced::Changed {
                    self.chat_followed(uri);
                }
            }
        }
    }

    /// What every change of a chat may mean for its session, in this order (G-24).
    pub(crate) fn chat_followed(&mut self, uri: &ChannelUri) {
        self.waiting_followed(uri);
        self.catalogue_followed(uri);
        self.needs_followed(uri);
        self.publish_session_of(uri);
    }

    /// A session with a draft or a message that waits is not empty (G-28).
    pub(crate) fn waiting_followed(&mut self, uri: &ChannelUri) {
        let Some(chat) = self.chat(uri) else { return };
        let state = &*chat.state;
        // Clients clear their input by syncing an empty draft: that is none.
        let has_draft = state.draft.as_ref().is_some_and(|draft| {
            let attached = draft["attachments"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            attached || draft["text"].as_str().is_some_and(|text| !text.is_empty())
        });
        let waiting: BTreeSet<&str> = state
            .queued_messages
            .iter()
            .map(|message| message.id.as_str())
            .collect();
        let steering = state.steering_message.as_ref();
        let gone: Vec<String> = chat
            .messages
            .iter()
            .filter(|(id, _)| {
                let steers = steering.is_some_and(|message| message.id == **id);
                !steers && !waiting.contains(id.as_str())
            })
            .map(|(id, _)| id.clone())
            .collect();
        let strangers = chat.authors.keys().any(|id| !waiting.contains(id.as_str()));
        let waits =
            has_draft || state.steering_message.is_some() || !state.queued_messages.is_empty();
        let session = chat.session.clone();
        self.forget_messages(uri, &gone);
        if strangers && let Some(chat) = self.chat_mut(uri) {
            let state = Arc::clone(&chat.state);
            let waits = |id: &String| state.queued_messages.iter().any(|other| other.id == *id);
            chat.authors.retain(|id, _| waits(id));
        }
        let Some(channel) = self.session_mut(&session) else {
            return;
        };
        let changed = if waits {
            channel.waiting.insert(uri.as_str().to_owned())
        } else {
            channel.waiting.remove(uri.as_str())
        };
        if changed {
            self.undo.touch(&session);
            self.record_summary(&session);
        }
    }

    /// The session's catalogue says what the chat says: status, activity, time (H-148, G-24).
    pub(crate) fn catalogue_followed(&mut self, uri: &ChannelUri) {
        let Some(chat) = self.chat(uri) else { return };
        let session = chat.session.clone();
        let state = Arc::clone(&chat.state);
        let Some(entry) = self
            .session_state(&session)
            .and_then(|session| session.chat(uri.as_str()))
        else {
            return;
        };
        let directories = state.working_directories.as_ref().map(|all| json!(all));
        let cleared = entry.activity.is_some() && state.activity.is_none();
        if cleared || entry.extra.get("workingDirectories") != directories.as_ref() {
            // A partial entry cannot clear a field: the whole entry is sent again (H-149).
            let mut summary = summary_of(&state);
            summary["title"] = json!(entry.title);
            let fields = json!({"summary": summary});
            self.act(&session, Action::host("session/chatAdded", fields), None);
            return;
        }
        let mut changes = wire::Object::new();
        if entry.status != state.status {
            changes.insert("status".to_owned(), json!(state.status));
        }
        if entry.activity != state.activity {
            changes.insert("activity".to_owned(), json!(state.activity));
        }
        if entry.modified_at != state.modified_at {
            changes.insert("modifiedAt".to_owned(), json!(state.modified_at));
        }
        if !changes.is_empty() {
            let fields = json!({"chat": uri.as_str(), "changes": changes});
            self.act(&session, Action::host("session/chatUpdated", fields), None);
        }
    }
}
