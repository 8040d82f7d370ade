//! May this peer do this here? Every action of a client passes this door, whoever sent it and whatever it claims.

use serde_json::Value;
use wire::ActionKind;
use wire::action::ActionError;
use wire::action::{ChatAction, ClientAction, SessionAction};
use wire::methods::Dispatch;
use wire::{Action, ChannelUri, Origin, compat};

use crate::Kernel;
use crate::bodies::AsSent;
use crate::channel::{chat, root, session};
use crate::io::{Owed, PeerId};
use crate::load::{Flow, Load, Memo};
use crate::prepare::Prepared;
use crate::record::{Answer, Query};
use crate::speak::Sender;

/// An action that may be recorded, normalised where a decision says so (H-075).
pub(crate) struct Permit(pub Action);

/// Why an action may not be; its sender hears it (H-066).
#[derive(Debug)]
pub(crate) struct Refusal(pub String);

impl Refusal {
    pub fn because(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Deepest nesting of an action: in a snapshot it lies a few levels deeper than it came, and must still be readable by
/// clients whose JSON readers stop at 127.
const ACTION_DEPTH_MAX: usize = 112;

/// Deepest nesting of what a request brings into state: it lies as deep there as what an action brings.
pub(crate) const CONTENT_DEPTH_MAX: usize = ACTION_DEPTH_MAX - 1;

pub(crate) fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth_of).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

impl Kernel {
    /// A client's action: refused, ignored (no such channel, H-068), or recorded with all that follows from it.
    pub(crate) fn dispatch(&mut self, peer: PeerId, dispatch: Dispatch, memo: &Memo) -> Flow<()> {
        let Dispatch {
            channel: uri,
            client_seq,
            mut action,
        } = dispatch;
        let Some(ready) = self.ready(peer) else {
            return Flow::Ready(());
        };
        let generation = ready.generation;
        let client_id = ready.client_id.clone();
        let sender = Sender {
            peer,
            origin: Origin {
                client_id: client_id.clone(),
                client_seq,
            },
        };
        compat::up_action(generation, &mut action);
        let Some(body) = action.as_object().cloned() else {
            return Flow::Ready(());
        };
        let body = AsSent::new(body, memo.lifted.clone());
        match self.need_channel(&uri, memo) {
            Flow::Ready(true) => {}
            Flow::Ready(false) => return Flow::Ready(()), // H-068
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => {
                self.refuse(&sender, &uri, &body.whole(), &failed.to_string());
                return Flow::Ready(());
            }
        }
        let owed = Owed::Refusal {
            peer,
            channel: uri.clone(),
            action: body.clone(),
            origin: sender.origin.clone(),
        };
        if let Some(reason) = self.unwritable() {
            self.refuse(&sender, &uri, &body.whole(), &reason);
            return Flow::Ready(());
        }
        let checked = Action::decode(action)
            .map_err(|error| match error {
                ActionError::NotAnAction | ActionError::BadPayload(_) => Refusal(error.to_string()),
            })
            .and_then(|action| self.may_be_sent(action));
        let (action, verb) = match checked {
            Ok(checked) => checked,
            Err(refusal) => {
                self.owe(owed);
                self.refuse(&sender, &uri, &body.whole(), &refusal.0);
                return Flow::Ready(());
            }
        };
        let target = self.target(&uri, verb);
        let Some(target) = target else {
            let reason = format!("`{}` does not belong on this channel", action.name());
            self.owe(owed);
            self.refuse(&sender, &uri, &body.whole(), &reason);
            return Flow::Ready(());
        };
        if let Some(query) = self.turn_id_to_look_up(&target, verb, &action, memo) {
            return Flow::Ask(vec![query]);
        }
        if let ClientAction::Chat(verb) = verb {
            match self.need_for(&target, verb, &action, memo) {
                Flow::Ready(()) => {}
                Flow::Ask(queries) => return Flow::Ask(queries),
                Flow::Failed(failed) => {
                    self.owe(owed);
                    self.refuse(&sender, &target, &body.whole(), &failed.to_string());
                    return Flow::Ready(());
                }
            }
        }
        let refused = match verb {
            ClientAction::Root(verb) => root::validate(&self.facts.config_schema, verb, action)
                .map(|Permit(action)| self.act_on_root(action, &sender)),
            ClientAction::Session(verb) => match self.session_state(&target) {
                Some(state) => session::validate(state, &client_id, verb, action)
                    .map(|Permit(action)| self.act_on_session(&target, verb, action, &sender)),
                None => Ok(()),
            },
            ClientAction::Chat(verb) => {
                let permit = chat::validate(self, &target, verb, action, &client_id, memo);
                let prepared = permit
                    .and_then(|permit| self.prepare(&target, verb, permit, body.light(), memo));
                match prepared {
                    Ok(Prepared::Ready((action, submission))) => {
                        self.act_on_chat(&target, verb, action, submission, &sender, memo);
                        Ok(())
                    }
                    Ok(Prepared::Errand(errand)) => return Flow::Errand(errand),
                    Err(refusal) => Err(refusal),
                }
            }
            ClientAction::OtherChannel(_) => Ok(()), // no channel of such a kind is a target
        };
        self.owe(owed);
        if let Err(refusal) = refused {
            self.refuse(&sender, &target, &body.whole(), &refusal.0);
        }
        Flow::Ready(())
    }

    /// Known, and for clients to dispatch at all (H-069, H-070).
    fn may_be_sent(&self, action: Action) -> Result<(Action, ClientAction), Refusal> {
        if action.kind == ActionKind::Unknown {
            return Err(Refusal(format!(
                "this host does not know the action `{}`",
                action.name()
            )));
        }
        let deepest = action.body.values().map(depth_of).max().unwrap_or(0);
        if 1 + deepest > ACTION_DEPTH_MAX {
            return Err(Refusal(format!(
                "an action nests at most {ACTION_DEPTH_MAX} levels deep"
            )));
        }
        match action.kind.client_action() {
            Some(verb) => Ok((action, verb)),
            None => Err(Refusal(format!(
                "only the host dispatches `{}`",
                action.name()
            ))),
        }
    }

    /// The channel an action acts on: the one it was sent to if the kinds agree. A rename sent to a chat acts on its
    /// session (G-13).
    fn target(&self, uri: &ChannelUri, verb: ClientAction) -> Option<ChannelUri> {
        match verb {
            ClientAction::Root(_) => uri.is_root().then(|| uri.clone()),
            ClientAction::Session(verb) => match self.chat(uri) {
                Some(chat) if verb == SessionAction::TitleChanged => Some(chat.session.clone()),
                Some(_) => None,
                None => self.session(uri).map(|_| uri.clone()),
            },
            ClientAction::Chat(_) => self.chat(uri).map(|_| uri.clone()),
            ClientAction::OtherChannel(_) => None,
        }
    }

    /// Whether a turn id was used before is known from memory if all turns ever are there; otherwise it is looked up
    /// at the submission, not at opening.
    fn turn_id_to_look_up(
        &self,
        chat: &ChannelUri,
        verb: ClientAction,
        action: &Action,
        memo: &Memo,
    ) -> Option<Query> {
        if verb != ClientAction::Chat(ChatAction::TurnStarted) || self.chat(chat)?.knows_all_turns()
        {
            return None;
        }
        let turn_id = action.text("turnId")?.to_owned();
        let query = Query::FindTurn {
            chat: self.channels.get(chat)?.id,
            turn_id,
        };
        memo.find(|asked| *asked == query)
            .is_none()
            .then_some(query)
    }

    /// What must be read before an action can be checked. What cannot be read is told when it is checked.
    fn need_for(
        &self,
        chat: &ChannelUri,
        verb: ChatAction,
        action: &Action,
        memo: &Memo,
    ) -> Load<()> {
        match verb {
            ChatAction::TurnStarted | ChatAction::PendingMessageSet => {
                self.need_attached_chats(action, memo)
            }
            ChatAction::Truncated => self.need_cut(chat, action, memo),
            ChatAction::TurnCancelled
            | ChatAction::TurnResume
            | ChatAction::DraftChanged
            | ChatAction::IsReadChanged
            | ChatAction::IsArchivedChanged
            | ChatAction::ToolCallConfirmed
            | ChatAction::ToolCallComplete
            | ChatAction::ToolCallResultConfirmed
            | ChatAction::ToolCallContentChanged
            | ChatAction::InputAnswerChanged
            | ChatAction::InputCompleted
            | ChatAction::PendingMessageRemoved
            | ChatAction::QueuedMessagesReordered
            | ChatAction::WorkingDirectorySet
            | ChatAction::WorkingDirectoryRemoved => Flow::Ready(()),
        }
    }

    pub(crate) fn turn_id_is_used(
        &self,
        chat: &ChannelUri,
        action: &Action,
        memo: &Memo,
    ) -> Result<bool, Refusal> {
        let Some(turn_id) = action.get("turnId").and_then(Value::as_str) else {
            return Ok(false);
        };
        let id = self.channels.get(chat).map(|channel| channel.id);
        let found = memo.find(|query| {
            matches!(query, Query::FindTurn { chat, turn_id: asked } if asked == turn_id && Some(*chat) == id)
        });
        let in_memory = self
            .chat_state(chat)
            .is_some_and(|state| state.turns.position(turn_id).is_some());
        match found {
            Some((_, Ok(Answer::FindTurn(found)))) => Ok(in_memory || found.is_some()),
            Some((_, Err(failed))) => Err(Refusal(failed.to_string())),
            Some((_, Ok(_))) | None => Ok(in_memory),
        }
    }
}
