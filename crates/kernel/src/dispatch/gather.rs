//! What must be known and checked before a client's action is recorded. Nothing is changed here.

use serde_json::Value;
use wire::ActionKind;
use wire::action::{
    AnnotationsAction, ChangesetAction, ChannelKind, ChatAction, ClientAction, RootAction,
    SessionAction, TerminalAction,
};
use wire::{Action, ChannelUri, Object, dialect};

use super::{check, plain};
use crate::client_dispatch::ClientDispatch;
use crate::customization;
use crate::journal_query::{Answer, Query};
use crate::load::need_channel;
use crate::message::need_attached_channels;
use crate::pause::{ActionStop, HandlerAnswers};
use crate::prepare::{Prepared, UnpreparedAction, prepare};
use crate::refusal::{ACTION_DEPTH_MAX, Refusal, depth_of};
use crate::state::Kernel;
use crate::truncate::{RemainingTurn, gather_cut};

/// An action that may be recorded, and on which channel.
pub(crate) enum Permitted {
    Root(RootAction, Action),
    Session {
        target: ChannelUri,
        verb: SessionAction,
        action: Action,
    },
    Chat {
        target: ChannelUri,
        verb: ChatAction,
        prepared: Box<Prepared>,
        /// Of a truncate: the turn that stays last.
        kept: Option<RemainingTurn>,
    },
    /// On a channel that is its state and nothing else.
    Plain {
        target: ChannelUri,
        verb: PlainAction,
        action: Action,
    },
}

/// What a client does to such a channel.
pub(crate) enum PlainAction {
    Changeset(ChangesetAction),
    Annotations(AnnotationsAction),
    Terminal(TerminalAction),
}

/// Checks an action, and reads what that takes.
pub(crate) fn gather(
    kernel: &Kernel,
    client_id: &str,
    dispatch: &ClientDispatch,
    answers: &HandlerAnswers,
) -> Result<Permitted, ActionStop> {
    let uri = &dispatch.channel;
    if !need_channel(kernel, uri, answers)? {
        // Whoever sent it waits for an answer: silence would leave its view waiting (G-23a).
        return Err(Refusal(format!("there is no channel {uri}")).into());
    }
    if let Some(reason) = kernel.unwritable() {
        return Err(Refusal(reason).into());
    }
    let (verb, action) = decode(dispatch, answers)?;
    let target = target_of(kernel, uri, verb).ok_or_else(|| {
        let name = action.name();
        Refusal(format!("`{name}` does not belong on this channel"))
    })?;
    match verb {
        ClientAction::Root(verb) => {
            let schema = &kernel.facts().config_schema;
            let action = check::root(schema, verb, action)?;
            Ok(Permitted::Root(verb, action))
        }
        ClientAction::Session(verb) => {
            let state = kernel.session(&target).state();
            let agent = kernel.find_agent(&state.provider);
            let enablement = kernel.channels().enablement();
            let limits = kernel.limits();
            let action = customization::keep_wider_decisions(kernel, &target, action);
            let action = check::session(state, agent, client_id, verb, action, enablement, limits)?;
            Ok(Permitted::Session { target, verb, action })
        }
        ClientAction::Chat(verb) => {
            gather_chat(kernel, target, verb, action, client_id, dispatch, answers)
        }
        ClientAction::Changeset(verb) => {
            gather_plain(kernel, target, PlainAction::Changeset(verb), action, client_id)
        }
        ClientAction::Annotations(verb) => {
            gather_plain(kernel, target, PlainAction::Annotations(verb), action, client_id)
        }
        ClientAction::Terminal(verb) => {
            gather_plain(kernel, target, PlainAction::Terminal(verb), action, client_id)
        }
        ClientAction::ResourceWatch(none) => match none {},
        ClientAction::OtherChannel(_) => {
            debug_assert!(false, "no channel of such a kind is a target");
            let name = action.name();
            Err(Refusal(format!("no channel here takes `{name}`")).into())
        }
    }
}

fn gather_plain(
    kernel: &Kernel,
    target: ChannelUri,
    verb: PlainAction,
    action: Action,
    client_id: &str,
) -> Result<Permitted, ActionStop> {
    let Some(channel) = kernel.find_plain(&target) else {
        unreachable!("{target} was found in memory before");
    };
    match (&verb, channel.state().terminal()) {
        (PlainAction::Annotations(verb), _) => {
            plain::annotations(channel, *verb, &action, kernel.limits())?;
        }
        (PlainAction::Changeset(verb), _) => plain::changeset(channel, *verb)?,
        (PlainAction::Terminal(verb), Some(state)) => {
            plain::terminal(kernel, state, client_id, *verb, &action)?;
        }
        (PlainAction::Terminal(_), None) => {
            return Err(Refusal::because("this channel is not a terminal").into());
        }
    }
    Ok(Permitted::Plain { target, verb, action })
}

fn gather_chat(
    kernel: &Kernel,
    target: ChannelUri,
    verb: ChatAction,
    mut action: Action,
    client_id: &str,
    dispatch: &ClientDispatch,
    answers: &HandlerAnswers,
) -> Result<Permitted, ActionStop> {
    if kernel.runs().is_stopping() {
        return Err(Refusal::because("the host is going down").into());
    }
    let mut kept = None;
    let mut turn_id_used = false;
    match verb {
        ChatAction::TurnStarted | ChatAction::PendingMessageSet => {
            if verb == ChatAction::TurnStarted {
                turn_id_used = is_turn_id_used(kernel, &target, &action, answers)?;
            }
            let message = action.get("message").and_then(Value::as_object);
            need_attached_channels(kernel, message, answers)?;
        }
        ChatAction::Truncated => kept = gather_cut(kernel, &target, &action, answers)??,
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
        | ChatAction::WorkingDirectoryRemoved => {}
    }
    let facts =
        check::ChatFacts { kernel, chat: kernel.chat(&target), client_id, turn_id_used, answers };
    check::chat(&facts, verb, &mut action)?;
    let unprepared = UnpreparedAction { verb, action, sent: &dispatch.sent, client_id };
    let prepared = prepare(kernel, &target, unprepared, answers)?;
    Ok(Permitted::Chat { target, verb, prepared: Box::new(prepared), kept })
}

/// Known, and for clients to dispatch at all (H-069, H-070).
fn decode(
    dispatch: &ClientDispatch,
    answers: &HandlerAnswers,
) -> Result<(ClientAction, Action), Refusal> {
    let kind = match &dispatch.kind {
        Ok(kind) => *kind,
        Err(error) => return Err(Refusal(error.to_string())),
    };
    let body = dispatch.sent.without_bodies();
    let name = body.get("type").and_then(Value::as_str).unwrap_or("");
    if kind == ActionKind::Unknown {
        return Err(Refusal(format!("this host does not know the action `{name}`")));
    }
    let Some(verb) = kind.client_action() else {
        return Err(Refusal(format!("only the host dispatches `{name}`")));
    };
    let deepest = body.values().map(depth_of).max().unwrap_or(0);
    if 1 + deepest > ACTION_DEPTH_MAX {
        return Err(Refusal(format!("an action nests at most {ACTION_DEPTH_MAX} levels deep")));
    }
    let body = match answers.detached_result() {
        Some(result) => with_result(body, result),
        None => body.clone(),
    };
    Ok((verb, Action { kind, body }))
}

/// An action with a result whose bodies were detached in place of the whole, which is not copied again.
fn with_result(sent: &Object, detached: &Object) -> Object {
    let fields = sent.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "result" => Value::Object(detached.clone()),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    fields.collect()
}

/// The channel an action acts on: the one it was sent to if the kinds agree. A rename sent to a chat acts on its session
/// (G-13).
fn target_of(kernel: &Kernel, uri: &ChannelUri, verb: ClientAction) -> Option<ChannelUri> {
    match verb {
        ClientAction::Root(_) => uri.is_root().then(|| uri.clone()),
        ClientAction::Session(verb) => match kernel.find_chat(uri) {
            Some(chat) if dialect::acts_on_session_of_chat(verb) => Some(chat.session().clone()),
            Some(_) => None,
            None => kernel.find_session(uri).map(|_| uri.clone()),
        },
        ClientAction::Chat(_) => kernel.find_chat(uri).map(|_| uri.clone()),
        ClientAction::Changeset(_) => of_kind(kernel, uri, ChannelKind::Changeset),
        ClientAction::Annotations(_) => of_kind(kernel, uri, ChannelKind::Annotations),
        ClientAction::Terminal(_) => of_kind(kernel, uri, ChannelKind::Terminal),
        ClientAction::ResourceWatch(none) => match none {},
        ClientAction::OtherChannel(_) => None,
    }
}

fn of_kind(kernel: &Kernel, uri: &ChannelUri, kind: ChannelKind) -> Option<ChannelUri> {
    let plain = kernel.find_plain(uri)?;
    (plain.state().kind() == kind).then(|| uri.clone())
}

/// Whether a turn id was used before: known from memory if all turns ever are there; otherwise it is looked up when a turn is
/// started, not when the chat is opened.
fn is_turn_id_used(
    kernel: &Kernel,
    uri: &ChannelUri,
    action: &Action,
    answers: &HandlerAnswers,
) -> Result<bool, ActionStop> {
    let chat = kernel.chat(uri);
    let Some(turn_id) = action.text("turnId") else {
        return Ok(false); // refused when it is checked
    };
    if chat.state().turns.position(turn_id).is_some() {
        return Ok(true);
    }
    if chat.knows_all_turns() {
        return Ok(false);
    }
    let query = Query::FindTurn { chat: kernel.id_of(uri), turn_id: turn_id.to_owned() };
    let answer = answers.read(query)?;
    debug_assert!(matches!(answer, Answer::FindTurn(_)), "answers fit their queries");
    Ok(matches!(answer, Answer::FindTurn(Some(_))))
}
