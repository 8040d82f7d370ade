//! `createChat`: another chat in a session, empty, forked from a turn, or beside one (H-140 to H-147).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ActionKind;
use wire::published::commands::{ChatSource, CreateChatParams};
use wire::rpc::code;
use wire::state::{ChatState, Turn};
use wire::{ChannelUri, Id, Object, RpcError};

use super::authenticate::check_has_tokens;
use super::uri::{self, bad};
use crate::author::Author;
use crate::channels::Chat;
use crate::chats::{self, ForkSource, NewChat};
use crate::host_command::rewind_first;
use crate::io::{MessageContext, PeerId};
use crate::journal_query::{Answer, Query, TurnPage};
use crate::load::need_channels;
use crate::message::{self, find_turn, need_attached_channels};
use crate::pause::{ActionStop, HandlerAnswers, RequestStop};
use crate::peers::ParkedMessage;
use crate::prepare::{compose, message_context};
use crate::record_message::record_message;
use crate::refusal::{CONTENT_DEPTH_MAX, Refusal, depth_of};
use crate::selection;
use crate::state::{Kernel, Step};
use crate::submission::Submission;
use crate::turn::start::begin_turn;
use crate::working_directories::inherited;

/// What a new chat is called until somebody names it.
const NEW_CHAT_TITLE: &str = "New chat";

/// A chat to be made, and the message that begins it.
pub(super) struct PlannedChat {
    session: ChannelUri,
    new: NewChat,
    message: Option<Submission>,
}

/// Where a new chat is to come from, as its `source` says.
struct WantedSource {
    kind: &'static str,
    chat: ChannelUri,
    turn_id: String,
    selection_bytes: usize,
    /// `ChatOrigin`, of nothing but what its type knows: it travels far.
    origin: Value,
}

impl WantedSource {
    fn of(source: &ChatSource) -> Result<Self, RpcError> {
        let (kind, chat, turn_id, selection) = match source {
            ChatSource::Fork(fork) => ("fork", &fork.chat, &fork.turn_id, None),
            ChatSource::SideChat(side) => {
                let selection = side.selection.as_ref();
                ("sideChat", &side.chat, &side.turn_id, selection)
            }
            ChatSource::Unknown(_) => {
                let message = "`source` must be a `fork` or a `sideChat` with `chat` and `turnId`";
                return Err(bad(message));
            }
        };
        let mut origin = json!({"kind": kind, "chat": chat, "turnId": turn_id});
        if let Some(selection) = selection {
            if selection.text.is_empty() {
                return Err(bad("`source.selection.text` must not be empty")); // H-145
            }
            origin["selection"] = wire::action::to_value(selection);
        }
        Ok(Self {
            kind,
            chat: uri::parse("source.chat", chat)?,
            turn_id: turn_id.clone(),
            selection_bytes: selection.map_or(0, |selection| selection.text.len()),
            origin,
        })
    }
}

/// Everything that can be wrong with the request is checked.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CreateChatParams,
    raw: &Value,
    waiting: &ParkedMessage,
) -> Result<PlannedChat, RequestStop> {
    let answers = &waiting.answers;
    let session = uri::parse("channel", &params.channel)?;
    let chat = uri::parse("chat", &params.chat)?;
    let source = params.source.as_ref().map(WantedSource::of).transpose()?;
    let mut wanted = vec![(session.clone(), 1), (chat.clone(), 1)];
    let from = source.as_ref().map(|source| source.chat.clone());
    wanted.extend(from.map(|from| (from, kernel.limits().open_turns)));
    let exist = need_channels(kernel, &wanted, answers)?;
    if kernel.find_session(&session).is_none() {
        return Err(uri::not_found(kernel, &session).into());
    }
    if chat.is_root() || exist.get(1) == Some(&true) {
        let message = format!("{chat} exists already");
        return Err(RpcError::new(code::ALREADY_EXISTS, message).into());
    }
    uri::check_names_chat(kernel, &session, &chat)?;
    let provider = &kernel.session(&session).state().provider;
    let mut agents = kernel.facts().offered_agents();
    let principal = kernel.peers().principal(peer);
    if let Some(agent) = agents.find(|agent| agent.provider == *provider) {
        check_has_tokens(agent, principal.as_deref())?;
    }
    let message = raw.get("initialMessage").and_then(Value::as_object);
    need_attached_channels(kernel, message, answers)?;
    let source = match source {
        None => None,
        Some(wanted) => {
            let source = find_source(kernel, &session, &chat, &wanted, answers)?;
            Some((source, wanted))
        }
    };
    let mut new = plan(kernel, &session, &chat, params, source)?;
    new.meta = selection::meta_of(raw)?;
    if let Some(message) = message {
        check_message(kernel, &session, &mut message.clone(), answers)?;
    }
    uri::check_writable(kernel)?;
    let own = new.working_directories.clone();
    let whole = || kernel.session(&session).state().working_directories.clone();
    let directories = own.or_else(whole).unwrap_or_default();
    let message = match message {
        None => None,
        Some(message) => Some(compose_message(
            kernel,
            message_context(kernel, &session, None, principal),
            &directories,
            message,
            waiting,
        )?),
    };
    Ok(PlannedChat { session, new, message })
}

/// What the first message means.
fn compose_message(
    kernel: &Kernel,
    context: MessageContext,
    directories: &[String],
    message: &Object,
    waiting: &ParkedMessage,
) -> Result<Submission, RequestStop> {
    let answers = &waiting.answers;
    let detached = |index: usize| waiting.detached.find(&format!("/attachments/{index}"));
    let session = context.session.clone();
    let composed = compose(kernel, context, directories, message, detached, answers);
    let mut submission = composed.map_err(|stop| match stop {
        ActionStop::Pause(pause) => RequestStop::Pause(pause),
        ActionStop::Refuse(refusal) => RequestStop::Fail(bad_message(&refusal)),
    })?;
    if let Some(conflict) = submission.conflict() {
        return Err(bad(format!("`initialMessage`: {conflict}")).into());
    }
    check_message(kernel, &session, &mut submission.message, answers)?;
    submission.drop_unused_model();
    message::pin_parts(kernel, &mut submission.parts);
    Ok(submission)
}

fn bad_message(refusal: &Refusal) -> RpcError {
    bad(format!("`initialMessage`: {}", refusal.0))
}

/// Checks a message as in a chat that does not exist yet.
fn check_message(
    kernel: &Kernel,
    session: &ChannelUri,
    message: &mut Object,
    answers: &HandlerAnswers,
) -> Result<(), RpcError> {
    if message.values().map(depth_of).max().unwrap_or(0) >= CONTENT_DEPTH_MAX {
        let problem = format!("`initialMessage` nests at most {CONTENT_DEPTH_MAX} levels deep");
        return Err(bad(problem));
    }
    if kernel.runs().is_stopping() {
        return Err(bad("the host is going down"));
    }
    let empty = ChatState::new("", "", 0, String::new());
    let chat = Chat::new(empty, session.clone(), kernel.id_of(session));
    message::check(kernel, &chat, message, answers).map_err(|refusal| bad_message(&refusal))
}

/// Everything but the source that can be wrong with the request.
fn plan(
    kernel: &Kernel,
    session: &ChannelUri,
    chat: &ChannelUri,
    params: &CreateChatParams,
    source: Option<(ForkSource, WantedSource)>,
) -> Result<NewChat, RpcError> {
    if kernel.session(session).is_failed() {
        return Err(bad("this session could not be created and takes no chats"));
    }
    let state = kernel.session(session).state();
    let agent = kernel.find_agent(&state.provider);
    let several = agent.map(|agent| &agent.info["capabilities"]["multipleChats"]);
    if several.is_none_or(|several| !several.is_object()) {
        return Err(bad("this agent has only one chat in a session")); // H-141
    }
    let most = kernel.limits().chats_max;
    if state.chats.len() >= most {
        return Err(bad(format!("a session has at most {most} chats")));
    }
    let from = source.as_ref().map(|(_, wanted)| kernel.chat(&wanted.chat).state());
    let is_fork = source.as_ref().is_some_and(|(source, _)| source.visible);
    let directories = match from.filter(|_| is_fork) {
        // A fork goes on where its source works (H-143).
        Some(from) => from.working_directories.clone(),
        None => {
            let wanted = params.working_directories.clone();
            let known = state.working_directories.as_deref().unwrap_or(&[]);
            let mut strange = wanted.iter().flatten();
            if strange.any(|directory| !known.contains(directory)) {
                let message = "`workingDirectories` must be among those of the session";
                return Err(bad(message)); // H-146
            }
            wanted.or_else(|| inherited(kernel, state))
        }
    };
    let title = from.map_or(NEW_CHAT_TITLE, |from| from.title.as_str()).to_owned();
    let (source, origin) = match source {
        Some((source, wanted)) => (Some(source), wanted.origin),
        None => (None, json!({"kind": "user"})),
    };
    Ok(NewChat {
        uri: chat.clone(),
        title,
        origin,
        interactivity: None,
        working_directories: directories,
        source,
        brief: None,
        depth: 0,
        meta: None,
    })
}

/// The turns a new chat begins with, or has as its context (H-142 to H-145).
fn find_source(
    kernel: &Kernel,
    session: &ChannelUri,
    chat: &ChannelUri,
    wanted: &WantedSource,
    answers: &HandlerAnswers,
) -> Result<ForkSource, RequestStop> {
    let visible = wanted.kind == "fork";
    let agent = kernel.find_agent(&kernel.session(session).state().provider);
    let able =
        agent.is_some_and(|agent| agent.info["capabilities"]["multipleChats"][wanted.kind] == true);
    if !able {
        return Err(bad("this agent does not make chats of this kind").into());
    }
    if wanted.selection_bytes > kernel.limits().selection_bytes_max {
        return Err(bad("`source.selection` is too large").into());
    }
    let source = kernel
        .find_chat(&wanted.chat)
        .filter(|source| wanted.chat != *chat && source.session() == session);
    let Some(source) = source else {
        return Err(bad("`source.chat` must be a chat of this session").into());
    };
    let turn_id = wanted.turn_id.as_str();
    let running = source.state().active_turn.as_ref();
    if let Some(turn) = running.filter(|turn| turn.id == turn_id) {
        if visible {
            return Err(bad("a chat can be forked from a completed turn only").into());
        }
        // Its context is everything before, and the running turn's response so far.
        let (last, partial) = (source.next_n().checked_sub(1), Some(turn.as_if_cancelled()));
        return Ok(source_through(kernel, wanted, last, TurnPage::default(), partial));
    }
    if visible {
        return find_fork(kernel, &wanted.chat, turn_id, answers);
    }
    let n = find_number(kernel, &wanted.chat, turn_id, answers)?;
    let page = TurnPage::default();
    Ok(source_through(kernel, wanted, Some(n), page, None))
}

fn find_number(
    kernel: &Kernel,
    chat: &ChannelUri,
    turn_id: &str,
    answers: &HandlerAnswers,
) -> Result<u64, RequestStop> {
    let n = find_turn(kernel, chat, turn_id, answers)?;
    n.ok_or_else(|| bad("`turnId` names no turn of that chat").into())
}

/// The turns of a chat up to one of them, for another chat to begin with.
pub(super) fn find_fork(
    kernel: &Kernel,
    chat: &ChannelUri,
    turn_id: &str,
    answers: &HandlerAnswers,
) -> Result<ForkSource, RequestStop> {
    let Some(source) = kernel.find_chat(chat) else {
        return Err(uri::not_found(kernel, chat).into());
    };
    if source.active_turn_id() == Some(turn_id) {
        return Err(bad("a chat can be forked from a completed turn only").into());
    }
    let n = find_number(kernel, chat, turn_id, answers)?;
    let page = if source.first_n() <= n {
        source.page_through(n)
    } else {
        let answer = answers.read(Query::Turns {
            chat: kernel.id_of(chat),
            before_n: n + 1,
            turns_max: kernel.limits().open_turns,
            bytes_max: kernel.limits().message_out_bytes as u64,
        })?;
        match answer {
            Answer::Turns(page) => page.clone(),
            _ => unreachable!("answers fit their queries"),
        }
    };
    let wanted = WantedSource {
        kind: "fork",
        chat: chat.clone(),
        turn_id: turn_id.to_owned(),
        selection_bytes: 0,
        origin: Value::Null,
    };
    Ok(source_through(kernel, &wanted, Some(n), page, None))
}

/// A source that ends with turn `through_n`.
fn source_through(
    kernel: &Kernel,
    wanted: &WantedSource,
    through_n: Option<u64>,
    page: TurnPage,
    partial: Option<Arc<Turn>>,
) -> ForkSource {
    let chat = kernel.chat(&wanted.chat);
    let visible = wanted.kind == "fork";
    let private = chat.private();
    let checkpoint =
        chat.checkpoint_of(&wanted.turn_id).cloned().map(|data| (wanted.turn_id.clone(), data));
    ForkSource {
        through: through_n.map(|n| (kernel.id_of(&wanted.chat), n)),
        page,
        visible,
        partial,
        host_like_turn_ids: private.host_like_turn_ids.clone(),
        compacted: private.compacted.clone().filter(|_| visible),
        refusals: private.refusals.clone(),
        agent_notes: private.agent_notes.clone().filter(|_| visible),
        checkpoint: checkpoint.filter(|_| visible),
    }
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, planned: PlannedChat) {
    let PlannedChat { session, new, message } = planned;
    let chat = new.uri.clone();
    chats::create_chat(step, &session, new);
    step.touch_modified(&session);
    if let Some(submission) = message {
        if submission.inline_bytes > 0 {
            let bytes = submission.inline_bytes;
            step.session_mut(&session).add_embedded_bytes(bytes);
        }
        begin_with(step, peer, &chat, submission);
    }
    step.respond(peer, id, &Value::Null);
}

/// The first turn, of the client that made the chat (H-147).
fn begin_with(step: &mut Step, peer: PeerId, chat: &ChannelUri, mut submission: Submission) {
    let commands = rewind_first(step, chat, submission.command_steps());
    let turn_id = step.chat(chat).free_turn_id(step.seq());
    let fields = json!({
        "turnId": turn_id,
        "startedAt": step.now().to_rfc3339(),
        "message": submission.take_message(),
    });
    let started = step.act_as_host(chat, ActionKind::ChatTurnStarted, fields);
    assert!(started, "a new chat takes a turn");
    let author = step.ready(peer).map(|ready| Author {
        client_id: ready.client_id.clone(),
        principal: step.peers().principal(peer),
    });
    let mut submitted = record_message(step, chat, submission, Some(turn_id));
    submitted.commands = commands;
    begin_turn(step, chat, author, submitted);
}
