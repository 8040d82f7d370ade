//! `createChat`: another chat in a session, empty, forked from a turn, or beside one (H-140 to H-147).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::published::commands::{ChatSource, CreateChatParams};
use wire::reduce::Reduced;
use wire::rpc::code;
use wire::state::Turn;
use wire::{Action, ActionKind, ChannelUri, Id, Object, RpcError};

use crate::Kernel;
use crate::authority::{CONTENT_DEPTH_MAX, Refusal, depth_of};
use crate::channel::ChatChannel;
use crate::chats::{NewChat, Source};
use crate::io::PeerId;
use crate::load::{Flow, Load, Memo};
use crate::prepare::Prepared;
use crate::record::{Answer, Query, StoredTurn, TurnPage};
use crate::submit::Submission;

/// What a new chat is called until somebody names it.
const NEW_TITLE: &str = "New chat";

/// Where a new chat is to come from, as its `source` says.
#[derive(Clone)]
struct Wanted {
    kind: &'static str,
    chat: ChannelUri,
    turn_id: String,
    selection_bytes: usize,
    /// `ChatOrigin`, of nothing but what its type knows: it travels far.
    origin: Value,
}

impl Wanted {
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
            chat: ChannelUri::parse(chat)
                .map_err(|error| bad(format!("`source.chat`: {error}")))?,
            turn_id: turn_id.clone(),
            selection_bytes: selection.map_or(0, |selection| selection.text.len()),
            origin,
        })
    }
}

fn bad(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message.into())
}

impl Kernel {
    pub(crate) fn create_chat(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &CreateChatParams,
        raw: &Value,
        memo: &Memo,
    ) -> Flow<()> {
        let parse = |name: &str, text: &str| {
            ChannelUri::parse(text).map_err(|error| bad(format!("`{name}`: {error}")))
        };
        let (session, chat) = match (
            parse("channel", &params.channel),
            parse("chat", &params.chat),
        ) {
            (Ok(session), Ok(chat)) => (session, chat),
            (Err(error), _) | (_, Err(error)) => return self.answer_error(peer, id, &error),
        };
        let source = match params.source.as_ref().map(Wanted::of).transpose() {
            Ok(source) => source,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let from = source.as_ref().map(|source| source.chat.clone());
        let mut wanted = vec![(session.clone(), 1), (chat.clone(), 1)];
        wanted.extend(from.clone().map(|from| (from, self.limits.open_turns)));
        let exist = match self.need_channels(&wanted, memo) {
            Flow::Ready(exist) => exist,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        if self.session(&session).is_none() {
            let error = self.not_found(&session);
            return self.answer_error(peer, id, &error);
        }
        if chat.is_root() || exist.get(1) == Some(&true) {
            let message = format!("{chat} exists already");
            let error = RpcError::new(code::ALREADY_EXISTS, message);
            return self.answer_error(peer, id, &error);
        }
        let message = raw.get("initialMessage").and_then(Value::as_object);
        match self.need_chats_of(message, memo) {
            Flow::Ready(()) => {}
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        }
        let source = match source {
            None => Flow::Ready(Ok(None)),
            Some(source) => self.source_of(&session, &chat, source, memo),
        };
        let planned = match source {
            Flow::Ready(source) => source.and_then(|source| {
                let new = self.plan_chat(&session, &chat, params, source)?;
                let message = self.plan_message(&session, message, memo)?;
                Ok((new, message))
            }),
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        if let Some(reason) = self.unwritable() {
            return self.answer_error(peer, id, &RpcError::new(code::INTERNAL_ERROR, reason));
        }
        let (new, _) = match planned {
            Ok(planned) => planned,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let directories = new.working_directories.clone().unwrap_or_default();
        let check = |kernel: &Self, message: &mut Object| {
            kernel.check_first_message(&session, message, memo)
        };
        let prepared = message
            .map(|message| self.prepare_message(&session, &directories, message, check, memo));
        let message = match prepared {
            Some(Ok(Prepared::Ready(message))) => Some(message),
            Some(Ok(Prepared::Errand(errand))) => return Flow::Errand(errand),
            Some(Err(refusal)) => {
                let error = bad(format!("`initialMessage`: {}", refusal.0));
                return self.answer_error(peer, id, &error);
            }
            None => None,
        };
        self.found_chat(&session, new);
        self.touch_modified(&session);
        if let Some(message) = message {
            self.begin_with(peer, &chat, message);
        }
        self.publish(&session);
        self.respond(peer, id, &Value::Null);
        Flow::Ready(())
    }

    /// The first turn, of the client that made the chat (H-147).
    fn begin_with(&mut self, peer: PeerId, chat: &ChannelUri, submission: Submission) {
        let steps = self.rewind_first(chat, submission.steps());
        let turn_id = self.free_turn_id(chat);
        let fields = json!({
            "turnId": turn_id,
            "startedAt": self.now.to_rfc3339(),
            "message": submission.message,
        });
        if self.act(
            chat,
            Action::host(ActionKind::ChatTurnStarted, fields),
            None,
        ) == Reduced::Changed
        {
            let author = self.ready(peer).map(|ready| ready.client_id.clone());
            let mut submitted = self.record_submission(chat, submission, Some(turn_id));
            submitted.steps = steps;
            self.turn_started(chat, author, submitted);
        }
    }

    fn plan_message(
        &self,
        session: &ChannelUri,
        message: Option<&Object>,
        memo: &Memo,
    ) -> Result<Option<Object>, RpcError> {
        let Some(mut message) = message.cloned() else {
            return Ok(None);
        };
        if message.values().map(depth_of).max().unwrap_or(0) >= CONTENT_DEPTH_MAX {
            return Err(bad(format!(
                "`initialMessage` nests at most {CONTENT_DEPTH_MAX} levels deep"
            )));
        }
        if self.stopping {
            return Err(bad("the host is going down"));
        }
        self.check_first_message(session, &mut message, memo)
            .map_err(|refusal| bad(format!("`initialMessage`: {}", refusal.0)))?;
        Ok(Some(message))
    }

    /// As in a chat that does not exist yet.
    fn check_first_message(
        &self,
        session: &ChannelUri,
        message: &mut Object,
        memo: &Memo,
    ) -> Result<(), Refusal> {
        let Some(id) = self.channels.get(session).map(|channel| channel.id) else {
            return Ok(());
        };
        let empty = wire::state::ChatState::new("", "", 0, String::new());
        let chat = ChatChannel::new(empty, session.clone(), id);
        self.check_message(&chat, message, memo)
    }

    /// Everything but the source that can be wrong with the request.
    fn plan_chat(
        &self,
        session: &ChannelUri,
        chat: &ChannelUri,
        params: &CreateChatParams,
        source: Option<(Source, Wanted)>,
    ) -> Result<NewChat, RpcError> {
        let state = self.session_state(session);
        let Some(state) = state.filter(|state| state.lifecycle != "failed") else {
            return Err(bad("this session could not be created and takes no chats"));
        };
        let agent = self.agent(Some(&state.provider)).ok();
        let several = agent.map(|agent| &agent.info["capabilities"]["multipleChats"]);
        if several.is_none_or(|several| !several.is_object()) {
            return Err(bad("this agent has only one chat in a session")); // H-141
        }
        if state.chats.len() >= self.limits.chats_max {
            let most = self.limits.chats_max;
            return Err(bad(format!("a session has at most {most} chats")));
        }
        let from = source
            .as_ref()
            .and_then(|(_, wanted)| self.chat_state(&wanted.chat));
        let directories = match (&source, from) {
            // A fork goes on where its source works (H-143).
            (Some((Source { visible: true, .. }, _)), Some(from)) => {
                from.working_directories.clone()
            }
            _ => {
                let wanted = params.working_directories.clone();
                let known = state.working_directories.as_deref().unwrap_or(&[]);
                let mut strange = wanted.iter().flatten();
                if strange.any(|directory| !known.contains(directory)) {
                    let message = "`workingDirectories` must be among those of the session";
                    return Err(bad(message)); // H-146
                }
                wanted.or_else(|| state.working_directories.clone())
            }
        };
        let title = from
            .map_or(NEW_TITLE, |from| from.title.as_str())
            .to_owned();
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
        })
    }

    /// The turns a new chat begins with, or has as its context (H-142 to H-145).
    fn source_of(
        &self,
        session: &ChannelUri,
        chat: &ChannelUri,
        wanted: Wanted,
        memo: &Memo,
    ) -> Load<Result<Option<(Source, Wanted)>, RpcError>> {
        let refuse = |message: &str| Flow::Ready(Err(bad(message)));
        let visible = wanted.kind == "fork";
        let provider = self.session_state(session).map(|state| &state.provider);
        let agent = provider.and_then(|provider| self.agent(Some(provider)).ok());
        let able = agent
            .is_some_and(|agent| agent.info["capabilities"]["multipleChats"][wanted.kind] == true);
        if !able {
            return refuse("this agent does not make chats of this kind");
        }
        if wanted.selection_bytes > self.limits.selection_bytes_max {
            return refuse("`source.selection` is too large");
        }
        let from = &wanted.chat;
        let found = (from != chat).then(|| Some((self.chat(from)?, self.channels.get(from)?)));
        let Some((source_chat, channel)) =
            found.flatten().filter(|(chat, _)| chat.session == *session)
        else {
            return refuse("`source.chat` must be a chat of this session");
        };
        let turn_id = wanted.turn_id.as_str();
        let running = source_chat.state.active_turn.as_ref();
        let running = running.filter(|turn| turn.id == turn_id);
        if running.is_some() && visible {
            return refuse("a chat can be forked from a completed turn only");
        }
        let made = |through_n: Option<u64>, page: TurnPage, partial: Option<Arc<Turn>>| {
            let source = Source {
                through: through_n.map(|n| (channel.id, n)),
                page,
                visible,
                partial,
                foreseen: source_chat.foreseen.clone(),
                compacted: source_chat.compacted.clone().filter(|_| visible),
                checkpoint: source_chat
                    .checkpoint
                    .clone()
                    .filter(|(turn, _)| visible && turn == turn_id),
            };
            Flow::Ready(Ok(Some((source, wanted.clone()))))
        };
        if let Some(turn) = running {
            // Its context is everything before, and what the running turn has said so far.
            let partial = Some(turn.as_if_cancelled());
            return made(
                source_chat.next_n.checked_sub(1),
                TurnPage::default(),
                partial,
            );
        }
        let n = match self.find_turn(from, turn_id, memo) {
            Flow::Ready(Some(n)) => n,
            Flow::Ready(None) => return refuse("`source.turnId` names no turn of that chat"),
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        if !visible {
            return made(Some(n), TurnPage::default(), None);
        }
        if source_chat.first_n() <= n {
            return made(Some(n), page_in_memory(source_chat, n), None);
        }
        let query = Query::Turns {
            chat: channel.id,
            before_n: n + 1,
            turns_max: self.limits.open_turns,
            bytes_max: self.limits.message_out_bytes as u64,
        };
        match memo.find(|asked| *asked == query) {
            None => Flow::Ask(vec![query]),
            Some((_, Err(failed))) => Flow::Failed(failed.clone()),
            Some((_, Ok(Answer::Turns(page)))) => made(Some(n), page.clone(), None),
            Some((_, Ok(_))) => refuse("`source.turnId` names no turn of that chat"),
        }
    }
}

/// The turns through `n` as far as they are in memory.
pub(crate) fn page_in_memory(chat: &ChatChannel, n: u64) -> TurnPage {
    let turns = chat.ns.iter().zip(chat.state.turns.as_slice());
    let turns = turns
        .filter(|(number, _)| **number <= n)
        .map(|(number, turn)| StoredTurn {
            n: *number,
            id: turn.id.clone(),
            outcome: turn.outcome,
            json: turn.json.clone(),
        });
    TurnPage {
        turns: turns.collect(),
        older: chat.older,
    }
}
