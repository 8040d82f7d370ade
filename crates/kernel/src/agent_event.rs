//! Makes actions of an agent's events while it works on a turn. Events of a stopped run are ignored: late ones change
//! nothing.

use agent_api::{AgentError, AgentEvent, AgentReply, CHAT_NOTES_BYTES_MAX, TextKind};
use bytes::Bytes;
use serde_json::{Value, json};
use wire::published::state::{ContentRef, UsageInfo};
use wire::{Action, ActionKind, ChannelUri, rpc};

use crate::agent_action::{notice, record_agent_action};
use crate::host_command;
use crate::io::{Effect, RunId};
use crate::record::Record;
use crate::state::Step;
use crate::tool_call::offer::list_offers;
use crate::tool_call::{agent as tool_call, client_tool};
use crate::turn::agent::settings_of;
use crate::turn::end::{end_turn, end_turn_in_error, stop_run};
use crate::turn::size::make_room;
use crate::{question, render, rewind_choice, sessions, steering_agent, worker};

/// An agent says something about the turn it works on.
pub(crate) fn handle(step: &mut Step, run: RunId, event: AgentEvent) {
    let Some(uri) = step.runs().chat_of(run).cloned() else {
        return; // the run was stopped
    };
    let Some(turn_id) = step.active_turn_id(&uri) else {
        debug_assert!(false, "a run ends with its turn");
        return;
    };
    let (uri, turn) = (&uri, turn_id.as_str());
    match event {
        AgentEvent::PartOpened { part, kind } => open_part(step, uri, turn, part, kind),
        AgentEvent::Text { part, text } => add_text(step, uri, turn, part, text),
        AgentEvent::Notice { text } => notice(step, uri, turn, &text),
        AgentEvent::Usage(usage) => report_usage(step, uri, turn, &usage),
        AgentEvent::Title(title) => {
            let session = step.chat(uri).session().clone();
            sessions::set_title_by_agent(step, &session, &title);
        }
        AgentEvent::Activity(activity) => set_activity(step, uri, activity),
        AgentEvent::Checkpoint(data) => store_checkpoint(step, uri, turn, data),
        AgentEvent::ChatNotes(notes) => store_chat_notes(step, uri, turn, run, &notes),
        AgentEvent::SettingChosen { name, value } => choose_setting(step, uri, turn, name, value),
        AgentEvent::Refusals(refusals) => store_refusals(step, uri, turn, &refusals),
        AgentEvent::ContentRef(content) => add_content_ref(step, uri, turn, &content),
        AgentEvent::InputRequested { ask, request } => question::ask_user(step, uri, ask, request),
        AgentEvent::QuestionWithdrawn { ask } => question::withdraw(step, uri, ask),
        AgentEvent::SteerPoint { steer } => {
            steering_agent::take_steering(step, uri, turn, run, steer);
        }
        AgentEvent::SteeringAwaited { steer } => steering_agent::await_steering(step, uri, steer),
        AgentEvent::SteeringTaken { pending_id } => {
            steering_agent::take_offered(step, uri, turn, &pending_id);
        }
        AgentEvent::SettingsRequested { ask } => reply_settings(step, uri, run, ask),
        AgentEvent::ClientToolsRequested { ask } => reply_client_tools(step, uri, run, ask),
        AgentEvent::Render { render, sections } => {
            render::render_for_turn(step, uri, run, render, sections);
        }
        AgentEvent::Spawned { call, worker } => worker::start_worker(step, run, call, *worker),
        AgentEvent::ToolStarted { .. }
        | AgentEvent::ToolInput { .. }
        | AgentEvent::ToolReady { .. }
        | AgentEvent::ConfirmationWithdrawn { .. }
        | AgentEvent::ToolContent { .. }
        | AgentEvent::ToolEdits { .. }
        | AgentEvent::ToolAuthRequired { .. }
        | AgentEvent::ToolAuthResolved { .. }
        | AgentEvent::ToolCompleted { .. }
        | AgentEvent::ToolRefused { .. }
        | AgentEvent::ClientTool { .. }
        | AgentEvent::ClientToolAwaited { .. } => handle_call(step, uri, turn, run, event),
        AgentEvent::Compacted { keep_turns, rounds, summary } => {
            compact(step, uri, keep_turns, rounds, summary)
        }
        AgentEvent::Rewind { turns } => rewind_choice::rewind(step, uri, turns),
        AgentEvent::Completed => {
            if host_command::end_restore(step, uri) {
                // the files are done; the turn goes on
            } else {
                complete_turn(step, uri, turn)
            }
        }
        AgentEvent::Failed(failure) => end_turn_in_error(step, uri, failure),
    }
}

/// An agent says something about a tool call.
fn handle_call(step: &mut Step, uri: &ChannelUri, turn: &str, run: RunId, event: AgentEvent) {
    match event {
        AgentEvent::ToolStarted { call, start } => {
            tool_call::start(step, uri, turn, call, *start);
        }
        AgentEvent::ToolInput { call, text } => tool_call::add_input(step, uri, turn, call, text),
        AgentEvent::ToolReady { call, ready } => {
            tool_call::set_ready(step, uri, turn, call, *ready);
        }
        AgentEvent::ConfirmationWithdrawn { call } => {
            tool_call::withdraw_confirmation(step, uri, turn, call);
        }
        AgentEvent::ToolContent { call, content } => {
            tool_call::set_content(step, uri, turn, call, content);
        }
        AgentEvent::ToolEdits { call, edits } => {
            tool_call::record_edits(step, uri, turn, call, &edits);
        }
        AgentEvent::ToolAuthRequired { call, auth } => {
            tool_call::require_auth(step, uri, turn, call, &auth);
        }
        AgentEvent::ToolAuthResolved { call } => tool_call::resolve_auth(step, uri, turn, call),
        AgentEvent::ToolCompleted { call, result, review } => {
            tool_call::complete(step, uri, turn, call, result, review)
        }
        AgentEvent::ClientTool { call, name, input, timeout_ms } => {
            let tool = client_tool::ClientTool { name, input, timeout_ms };
            client_tool::call_client(step, uri, turn, run, call, &tool);
        }
        AgentEvent::ClientToolAwaited { call, timeout_ms } => {
            client_tool::await_client(step, uri, run, call, timeout_ms);
        }
        AgentEvent::ToolRefused { call, ready, result } => {
            tool_call::refuse(step, uri, turn, call, *ready, result)
        }
        _ => debug_assert!(false, "not about a tool call"),
    }
}

fn set_activity(step: &mut Step, uri: &ChannelUri, activity: Option<String>) {
    let fields = json!({"activity": activity});
    step.act_as_host(uri, ActionKind::ChatActivityChanged, fields);
}

fn reply_settings(step: &mut Step, uri: &ChannelUri, run: RunId, ask: u64) {
    let values = settings_of(step, uri);
    let reply = AgentReply::Settings { ask, values };
    step.effect(Effect::Reply { run, reply });
}

fn reply_client_tools(step: &mut Step, uri: &ChannelUri, run: RunId, ask: u64) {
    let tools = list_offers(step, uri);
    let reply = AgentReply::ClientTools { ask, tools };
    step.effect(Effect::Reply { run, reply });
}

fn complete_turn(step: &mut Step, uri: &ChannelUri, turn_id: &str) {
    let fields = json!({"turnId": turn_id});
    end_turn(step, uri, ActionKind::ChatTurnComplete, fields);
}

fn open_part(step: &mut Step, uri: &ChannelUri, turn_id: &str, part: u64, kind: TextKind) {
    let id = format!("p{}", step.seq().0 + 1); // from the seq that creates it (G-26)
    let name = match kind {
        TextKind::Markdown => "markdown",
        TextKind::Reasoning => "reasoning",
    };
    let body = json!({"kind": name, "id": id, "content": ""});
    let fields = json!({"turnId": turn_id, "part": body});
    step.act_as_host(uri, ActionKind::ChatResponsePart, fields);
    if let Some(run) = step.run_mut(uri) {
        run.add_part(part, id, kind);
    }
}

/// More text for an open part; a part that was never opened has none.
fn add_text(step: &mut Step, uri: &ChannelUri, turn_id: &str, part: u64, text: String) {
    if !make_room(step, uri, rpc::text_bytes(&text)) {
        return; // the turn ended in an error that says why
    }
    let run = step.chat(uri).run();
    if let Some((id, kind)) = run.and_then(|run| run.part(part)) {
        let action = match kind {
            TextKind::Markdown => Action::delta(turn_id, id, text),
            TextKind::Reasoning => Action::reasoning(turn_id, id, text),
        };
        step.act(uri, action, None);
    }
}

/// What no client could read is not sent, and not kept a secret either (H-078).
fn report_usage(step: &mut Step, uri: &ChannelUri, turn_id: &str, usage: &UsageInfo) {
    let usage = Action::host(ActionKind::ChatUsage, json!({"turnId": turn_id, "usage": usage}));
    match Action::decode(Value::Object(usage.body)) {
        Ok(usage) => {
            step.act(uri, usage, None);
        }
        Err(error) => {
            let text = format!("the agent's usage report: {error}");
            notice(step, uri, turn_id, &text);
        }
    }
}

fn add_content_ref(step: &mut Step, uri: &ChannelUri, turn_id: &str, content: &ContentRef) {
    let mut part = json!(content);
    part["kind"] = json!("contentRef");
    let fields = json!({"turnId": turn_id, "part": part});
    record_agent_action(step, uri, ActionKind::ChatResponsePart, fields);
}

/// What an agent wants to have back when the turn is resumed.
fn store_checkpoint(step: &mut Step, uri: &ChannelUri, turn_id: &str, data: Bytes) {
    let most = step.limits().checkpoint_bytes_max;
    if data.len() > most {
        let failure = AgentError {
            error_type: "checkpointTooLarge".to_owned(),
            message: format!("the agent's checkpoint exceeds {most} bytes"),
            resumable: false,
        };
        stop_run(step, uri);
        return end_turn_in_error(step, uri, failure);
    }
    step.record(Record::Checkpoint {
        chat: step.id_of(uri),
        turn_id: turn_id.to_owned(),
        data: Some(data.clone()),
    });
    step.set_checkpoint(uri, turn_id.to_owned(), data);
}

/// Records an agent's notes for later turns of this chat, and replies when they are on disk.
fn store_chat_notes(step: &mut Step, uri: &ChannelUri, turn_id: &str, run: RunId, notes: &[u8]) {
    match std::str::from_utf8(notes) {
        Ok(text) if text.len() <= CHAT_NOTES_BYTES_MAX => {
            step.chat_mut(uri).set_agent_notes(text.to_owned());
        }
        Ok(_) => {
            let text = format!(
                "the agent's notes exceed {CHAT_NOTES_BYTES_MAX} bytes and were not stored"
            );
            notice(step, uri, turn_id, &text);
        }
        Err(_) => {
            let text = "the agent's notes are not text and were not stored";
            notice(step, uri, turn_id, text);
        }
    }
    let reply = AgentReply::ChatNoted;
    step.effect(Effect::Reply { run, reply });
}

/// The user chose a value of a setting by answering a call: the session changes as if a client had set it.
fn choose_setting(step: &mut Step, uri: &ChannelUri, turn_id: &str, name: String, value: Value) {
    let session = step.chat(uri).session().clone();
    if let Err(why) = sessions::change_setting(step, &session, name, value) {
        notice(step, uri, turn_id, &why);
    }
}

/// Records what the agent's model refused in this chat, for its later turns (G-50).
fn store_refusals(step: &mut Step, uri: &ChannelUri, turn_id: &str, refusals: &Bytes) {
    let most = step.limits().checkpoint_bytes_max;
    if refusals.len() > most {
        let text = format!("what the model refused exceeds {most} bytes and was not stored");
        return notice(step, uri, turn_id, &text);
    }
    let text = String::from_utf8_lossy(refusals).into_owned();
    step.chat_mut(uri).set_refusals(Some(text));
}

/// The agent remembers less from now on.
fn compact(
    step: &mut Step,
    uri: &ChannelUri,
    keep_turns: usize,
    rounds: u64,
    summary: Option<String>,
) {
    let most = step.limits().checkpoint_bytes_max;
    let summary = summary.map(|mut summary| {
        summary.truncate(summary.floor_char_boundary(most));
        summary
    });
    step.chat_mut(uri).compact(keep_turns, rounds, summary);
}
