//! A client's action that may be recorded is recorded, and what follows from it is done.

use agent_api::McpRequest;
use wire::action::{ChangesetAction, ChatAction, RootAction, SessionAction};
use wire::reduce::Reduced;
use wire::{Action, ChannelUri};

use super::gather::{Permitted, PlainAction};
use crate::chats::update_movable_chats;
use crate::io::{Effect, McpServerRequest};
use crate::prepare::Prepared;
use crate::selection;
use crate::sessions::follow_title_of_client;
use crate::state::{Sender, Step};
use crate::tool_call::client::{complete_call, confirm_call, confirm_result};
use crate::tool_call::reply::fail_calls_of_client;
use crate::truncate::{RemainingTurn, cut_back};
use crate::turn::{end, start};
use crate::{customization, pending, question, render, terminal, working_directories};

/// Records an action. Nothing can go wrong here: everything was checked before.
pub(crate) fn apply(step: &mut Step, permitted: Permitted, sender: &Sender) {
    match permitted {
        Permitted::Root(RootAction::ConfigChanged, action) => configure(step, &action, sender),
        Permitted::Session { target, verb, action } => {
            apply_to_session(step, &target, verb, action, sender)
        }
        Permitted::Chat { target, verb, prepared, kept } => {
            if prepared.embedded_bytes > 0 {
                let session = step.chat(&target).session().clone();
                let bytes = prepared.embedded_bytes;
                step.session_mut(&session).add_embedded_bytes(bytes);
            }
            apply_to_chat(step, &target, verb, *prepared, kept, sender);
        }
        Permitted::Plain { target, verb, action } => {
            apply_to_plain(step, &target, &verb, action, sender)
        }
    }
}

/// A client changes the host's own settings.
fn configure(step: &mut Step, action: &Action, sender: &Sender) {
    if step.act_on_root(action, Some(sender)) == Reduced::Changed {
        let config = step.channels().root().config.as_ref();
        let values = config.map(|config| config.values.clone()).unwrap_or_default();
        step.effect(Effect::Configure { values });
    }
}

fn apply_to_session(
    step: &mut Step,
    uri: &ChannelUri,
    verb: SessionAction,
    action: Action,
    sender: &Sender,
) {
    if verb == SessionAction::SystemMessageTransformSet {
        return render::opt_in(step, uri, &action, sender);
    }
    if verb == SessionAction::SelectionSet {
        return selection::select(step, uri, &action, sender);
    }
    if matches!(
        verb,
        SessionAction::WorkingDirectorySet
            | SessionAction::WorkingDirectoryRemoved
            | SessionAction::WorkingDirectoryReplaced
    ) {
        return change_directories(step, uri, verb, action, sender);
    }
    if verb == SessionAction::CustomizationToggled {
        return customization::toggle(step, uri, action, sender);
    }
    let id = action.text("id").unwrap_or_default().to_owned();
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    let client_id = &sender.origin.client_id;
    match verb {
        SessionAction::TitleChanged => follow_title_of_client(step, uri),
        SessionAction::ConfigChanged => pass_on_settings(step, uri),
        SessionAction::McpServerStartRequested => request_mcp(step, uri, id, McpRequest::Start),
        SessionAction::McpServerStopRequested => request_mcp(step, uri, id, McpRequest::Stop),
        SessionAction::McpServerBackgroundRequested => {
            request_mcp(step, uri, id, McpRequest::Background);
        }
        SessionAction::ActiveClientSet => {
            step.add_active_client(uri, client_id);
            customization::survey_plugins(step, uri, Some(client_id));
        }
        SessionAction::ActiveClientRemoved => {
            step.remove_active_client(uri, client_id);
            fail_calls_of_client(step, uri, client_id);
            customization::survey_plugins(step, uri, None);
        }
        SessionAction::DefaultChatChanged => update_movable_chats(step, uri),
        SessionAction::IsReadChanged
        | SessionAction::IsArchivedChanged
        | SessionAction::WorkingDirectorySet
        | SessionAction::WorkingDirectoryRemoved
        | SessionAction::WorkingDirectoryReplaced
        | SessionAction::CustomizationToggled
        | SessionAction::SelectionSet
        | SessionAction::SystemMessageTransformSet => {}
    }
}

fn apply_to_plain(
    step: &mut Step,
    uri: &ChannelUri,
    verb: &PlainAction,
    action: Action,
    sender: &Sender,
) {
    match verb {
        PlainAction::Terminal(verb) => terminal::act_for_client(step, uri, *verb, action, sender),
        PlainAction::Annotations(_)
        | PlainAction::Changeset(ChangesetAction::FilesReviewChanged) => {
            step.act(uri, action, Some(sender));
        }
    }
}

/// The session works elsewhere from its next turn on.
fn change_directories(
    step: &mut Step,
    uri: &ChannelUri,
    verb: SessionAction,
    action: Action,
    sender: &Sender,
) {
    if step.act(uri, action.clone(), Some(sender)) == Reduced::Changed {
        working_directories::follow_session(step, uri, verb, &action);
    }
}

/// The agent does what it can, and says how the server is then (H-305).
fn request_mcp(step: &mut Step, uri: &ChannelUri, id: String, request: McpRequest) {
    let provider = step.session(uri).state().provider.clone();
    step.effect(Effect::RequestMcp(McpServerRequest {
        session: uri.clone(),
        provider,
        id,
        request,
    }));
}

/// Sends the agent of a session its settings as they are now, also in the middle of a turn.
fn pass_on_settings(step: &mut Step, uri: &ChannelUri) {
    let state = step.session(uri).state();
    let config = state.config.as_ref();
    let effect = Effect::SettingsChanged {
        session: uri.clone(),
        provider: state.provider.clone(),
        values: config.map(|config| config.values.clone()).unwrap_or_default(),
    };
    step.effect(effect);
}

fn apply_to_chat(
    step: &mut Step,
    uri: &ChannelUri,
    verb: ChatAction,
    prepared: Prepared,
    kept: Option<RemainingTurn>,
    sender: &Sender,
) {
    let Prepared { action, submission, .. } = prepared;
    match (verb, submission) {
        (ChatAction::TurnStarted, Some(submission)) => {
            start::start_turn(step, uri, action, submission, sender);
        }
        (ChatAction::PendingMessageSet, Some(submission)) => {
            pending::set(step, uri, action, submission, sender);
        }
        (ChatAction::TurnStarted | ChatAction::PendingMessageSet, None) => {
            unreachable!("a message that was prepared means something")
        }
        (ChatAction::TurnCancelled, _) => end::cancel_turn(step, uri, action, sender),
        (ChatAction::TurnResume, _) => start::resume_turn(step, uri, action, sender),
        (ChatAction::Truncated, _) => cut_back(step, uri, action, Some(sender), kept),
        (ChatAction::ToolCallConfirmed, _) => confirm_call(step, uri, action, sender),
        (ChatAction::ToolCallComplete, _) => complete_call(step, uri, action, sender),
        (ChatAction::ToolCallResultConfirmed, _) => confirm_result(step, uri, action, sender),
        (ChatAction::InputCompleted, _) => question::answer(step, uri, action, sender),
        (
            ChatAction::DraftChanged
            | ChatAction::IsReadChanged
            | ChatAction::IsArchivedChanged
            | ChatAction::ToolCallContentChanged
            | ChatAction::InputAnswerChanged
            | ChatAction::PendingMessageRemoved
            | ChatAction::QueuedMessagesReordered
            | ChatAction::WorkingDirectorySet
            | ChatAction::WorkingDirectoryRemoved,
            _,
        ) => {
            step.act(uri, action, Some(sender));
        }
    }
}
