//! May a client do this to this root, session or chat? What a decision says to fill in or to strip is done to the action (H-075).

use agent_api::RenamedSetting;
use serde_json::Value;
use wire::action::{ChatAction, RootAction, SessionAction};
use wire::state::SessionState;
use wire::{Action, Object, compat};

use crate::channels::{Chat, Enablement};
use crate::io::AgentFacts;
use crate::limits::Limits;
use crate::message::{is_longer_than, not_a_user_message, size_of, too_large};
use crate::pause::HandlerAnswers;
use crate::refusal::Refusal;
use crate::selection;
use crate::state::Kernel;
use crate::tool_call::check as tool_call;
use crate::turn::check as turn;
use crate::working_directories::{self, DirectoryRule};
use crate::{config, customization, pending, question, render};

/// Unknown settings are stripped, bad values refused (G-22, H-097).
pub(super) fn root(
    schema: &Value,
    verb: RootAction,
    mut action: Action,
) -> Result<Action, Refusal> {
    match verb {
        RootAction::ConfigChanged => {
            let wanted = config_of(&action);
            let mut values = config::known_values(schema, &wanted).map_err(bad_value)?;
            if action.flag("replace") == Some(true) {
                values = config::with_defaults(schema, &values).map_err(bad_value)?;
            }
            let values = Value::Object(values);
            action.body.insert("config".to_owned(), values);
            Ok(action)
        }
    }
}

fn config_of(action: &Action) -> Object {
    action.get("config").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn bad_value(bad: config::InvalidSetting) -> Refusal {
    Refusal(bad.to_string())
}

pub(super) fn session(
    session: &SessionState,
    agent: Option<&AgentFacts>,
    client_id: &str,
    verb: SessionAction,
    action: Action,
    enablement: &Enablement,
    limits: &Limits,
) -> Result<Action, Refusal> {
    match verb {
        SessionAction::TitleChanged
        | SessionAction::IsReadChanged
        | SessionAction::IsArchivedChanged => Ok(action),
        // A client may only set and remove itself (H-125).
        SessionAction::ActiveClientSet => {
            let action = check_alone(session, client_id, action)?;
            match action.get("activeClient").map(|client| &client["clientId"]) {
                Some(id) if *id == client_id => {
                    check_room_for_client(session, client_id, &action, limits).map(|()| action)
                }
                _ => Err(Refusal::because(
                    "a client may only make itself active: `clientId` must be its own",
                )),
            }
        }
        SessionAction::ActiveClientRemoved => match action.text("clientId") {
            Some(id) if id == client_id => Ok(action),
            _ => {
                Err(Refusal::because("a client may only remove itself: `clientId` must be its own"))
            }
        },
        SessionAction::ConfigChanged => {
            let renamed = agent.map_or(&[][..], |agent| &agent.renamed_settings);
            session_config(session, renamed, action)
        }
        SessionAction::SystemMessageTransformSet => {
            render::check_opt_in(session, client_id, &action).map(|()| action)
        }
        SessionAction::SelectionSet => selection::check(&action).map(|()| action),
        SessionAction::DefaultChatChanged => {
            let chat = action.text("defaultChat");
            if chat.is_some_and(|chat| session.chat(chat).is_some()) {
                Ok(action)
            } else {
                Err(Refusal::because("`defaultChat` is not a chat of this session"))
            }
        }
        SessionAction::WorkingDirectorySet
        | SessionAction::WorkingDirectoryRemoved
        | SessionAction::WorkingDirectoryReplaced => {
            let rule = DirectoryRule::of(agent);
            working_directories::check_session(rule, session, verb, &action, limits)?;
            Ok(action)
        }
        SessionAction::CustomizationToggled => {
            customization::check_toggled(session, enablement, action)
        }
        SessionAction::McpServerStartRequested
        | SessionAction::McpServerStopRequested
        | SessionAction::McpServerBackgroundRequested => {
            customization::check_mcp_request(session, action)
        }
    }
}

/// In 0.4 one client is active, and a second is refused until the first has left.
fn check_alone(
    session: &SessionState,
    client_id: &str,
    mut action: Action,
) -> Result<Action, Refusal> {
    if action.body.shift_remove(compat::ONLY_CLIENT).is_none() {
        return Ok(action); // it knows that there may be others
    }
    let mut clients = session.active_clients.iter();
    match clients.find(|entry| entry["clientId"] != client_id) {
        Some(_) => Err(Refusal::because(
            "another client is active in this session: in this version of the protocol one can be, and it must leave first",
        )),
        None => Ok(action),
    }
}

/// Active clients travel in every snapshot of their session: neither they nor what they say may be without end.
fn check_room_for_client(
    session: &SessionState,
    client_id: &str,
    action: &Action,
    limits: &Limits,
) -> Result<(), Refusal> {
    let others = session.active_clients.iter().filter(|entry| entry["clientId"] != client_id);
    let most = limits.active_clients_max;
    if others.clone().count() >= most {
        return Err(Refusal(format!(
            "a session has at most {most} active clients (active_clients_max)"
        )));
    }
    let most = limits.active_clients_bytes_max;
    let entries = others.chain(action.get("activeClient"));
    if entries.map(wire::bounds::bytes_of).sum::<usize>() > most {
        return Err(Refusal(format!(
            "the active clients of a session have at most {most} bytes together (active_clients_bytes_max)"
        )));
    }
    Ok(())
}

/// Only values that may change while a session lives (H-117); with `replace` the others stay what they are.
fn session_config(
    session: &SessionState,
    renamed: &[RenamedSetting],
    mut action: Action,
) -> Result<Action, Refusal> {
    let Some(current) = &session.config else {
        return Err(Refusal::because("this session has no configuration"));
    };
    let wanted = config::rename(renamed, &config_of(&action));
    let is_mutable = |key: &str| config::is_mutable(&current.schema, key);
    if let Some(key) = wanted.keys().find(|key| !is_mutable(key)) {
        return Err(Refusal(format!("`{key}` cannot be changed in a session that exists")));
    }
    let mut values = config::known_values(&current.schema, &wanted).map_err(bad_value)?;
    if action.flag("replace") == Some(true) {
        values = config::with_defaults(&current.schema, &values).map_err(bad_value)?;
        let fixed = current.values.iter().filter(|(key, _)| !is_mutable(key));
        values.extend(fixed.map(|(key, value)| (key.clone(), value.clone())));
    }
    let values = Value::Object(values);
    action.body.insert("config".to_owned(), values);
    Ok(action)
}

/// What a check of an action on a chat may look at.
pub(super) struct ChatFacts<'a> {
    pub kernel: &'a Kernel,
    pub chat: &'a Chat,
    pub client_id: &'a str,
    pub turn_id_used: bool,
    pub answers: &'a HandlerAnswers,
}

pub(super) fn chat(
    facts: &ChatFacts,
    verb: ChatAction,
    action: &mut Action,
) -> Result<(), Refusal> {
    let ChatFacts { kernel, chat, client_id, answers, .. } = *facts;
    let state = chat.state();
    match verb {
        ChatAction::TurnStarted => {
            turn::check_start(kernel, chat, action, facts.turn_id_used, answers)
        }
        ChatAction::TurnCancelled => turn::check_cancel(state, action),
        ChatAction::TurnResume => {
            if kernel.session(chat.session()).is_ready() {
                turn::check_resume(state, action)
            } else {
                Err(Refusal::because("this session is not ready"))
            }
        }
        ChatAction::DraftChanged => match action.present("draft") {
            Some(draft) if draft["origin"]["kind"] != "user" => Err(not_a_user_message()),
            Some(draft) => {
                let most = kernel.limits().waiting_bytes_max;
                if is_longer_than(draft, most) || size_of(draft) > most {
                    Err(too_large(kernel))
                } else {
                    Ok(())
                }
            }
            None => Ok(()),
        },
        ChatAction::IsReadChanged | ChatAction::IsArchivedChanged => Ok(()),
        ChatAction::ToolCallConfirmed => tool_call::check_confirmed(state, action),
        ChatAction::ToolCallComplete => tool_call::check_complete(state, action, client_id),
        ChatAction::ToolCallResultConfirmed => tool_call::check_result_confirmed(state, action),
        ChatAction::ToolCallContentChanged => tool_call::check_content(state, action, client_id),
        ChatAction::InputAnswerChanged => question::check_answer_changed(state, action),
        ChatAction::InputCompleted => question::check_completed(state, action),
        ChatAction::PendingMessageSet => pending::check_set(kernel, chat, action, answers),
        ChatAction::PendingMessageRemoved => pending::check_removed(state, action),
        ChatAction::QueuedMessagesReordered => pending::check_reordered(state, action),
        ChatAction::Truncated => Ok(()), // checked with the turn it names
        ChatAction::WorkingDirectorySet | ChatAction::WorkingDirectoryRemoved => {
            let adds = verb == ChatAction::WorkingDirectorySet;
            working_directories::check_chat(kernel, chat, action, adds)
        }
    }
}
