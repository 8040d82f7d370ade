//! Terminals: how one begins, what happens in it, who holds it, how it is listed and how it ends (H-270 to H-277, G-56). Whoever
//! runs the process in one hears of it by effects.
//!
//! Promises: what is typed is in no state and no record; a terminal has exactly one holder; a process whose channel is gone is
//! ended.

use agent_api::{TerminalChange, TerminalHolder};
use serde_json::{Value, json};
use wire::action::TerminalAction;
use wire::state::TerminalState;
use wire::{Action, ActionKind, ChannelUri, Object};

use crate::background_task::BackgroundTask;
use crate::io::{Effect, RunId, ShownTerminalFacts, TerminalStart, TerminalTask, Timer, TypedText};
use crate::plain::{self, NewPlainChannel};
use crate::state::{Kernel, Sender, Step};

/// Said of a terminal whose host is gone, below whatever it showed last.
const HOST_ENDED: &str = "[the host was restarted: what ran here has ended]";

/// What a claim, and the private record of a terminal, say of the call that runs in it.
const OF_CALL: [&str; 2] = ["turnId", "toolCallId"];

/// A terminal that a client wants.
pub(crate) struct NewTerminal {
    pub uri: ChannelUri,
    pub title: String,
    pub claim: Value,
    /// The session and the chat that it belongs to, if it was made for them.
    pub chat: Option<(ChannelUri, ChannelUri)>,
    pub start: TerminalStart,
}

/// Makes a terminal for a client, and has a shell started in it.
pub(crate) fn create(step: &mut Step, new: NewTerminal) {
    let NewTerminal { uri, start, claim, .. } = new;
    let mut state = TerminalState::new(&new.title, claim);
    (state.cols, state.rows) = (Some(start.columns), Some(start.rows));
    state.cwd.clone_from(&start.directory);
    make_channel(step, uri.clone(), state, new.chat);
    act_outside(step, &uri, TerminalTask::Start(start));
}

/// A call of an agent runs a command in a terminal. One of a run that was stopped is not shown: it ends.
pub(crate) fn show(step: &mut Step, run: RunId, facts: ShownTerminalFacts) {
    let uri = facts.terminal;
    let chat = step.runs().chat_of(run).cloned();
    let place = chat.and_then(|chat| {
        let found = step.find_chat(&chat)?;
        let run = found.run()?;
        let turn = found.state().active_turn.as_ref()?;
        let mut claim = json!({
            "kind": "session",
            "session": found.session().as_str(),
            "chat": chat.as_str(),
            "turnId": turn.id,
        });
        if let Some(id) = run.call_id(facts.call) {
            claim["toolCallId"] = json!(id);
        }
        Some((claim, found.session().clone(), chat.clone()))
    });
    let Some((claim, session, chat)) = place.filter(|_| step.unwritable().is_none()) else {
        return act_outside(step, &uri, TerminalTask::Kill);
    };
    let mut state = TerminalState::new(&facts.title, claim);
    (state.cols, state.rows) = (Some(facts.columns), Some(facts.rows));
    state.cwd = Some(wire::file_uri::uri_of(&facts.directory));
    make_channel(step, uri, state, Some((session, chat)));
}

fn make_channel(
    step: &mut Step,
    uri: ChannelUri,
    mut state: TerminalState,
    chat: Option<(ChannelUri, ChannelUri)>,
) {
    state.extra.insert("isPty".to_owned(), json!(true));
    let mut private = Object::new();
    let session = chat.map(|(session, chat)| {
        private.insert("session".to_owned(), json!(session.as_str()));
        private.insert("chat".to_owned(), json!(chat.as_str()));
        // Whoever takes it over may leave it behind: then its call has it again.
        for name in OF_CALL {
            if let Some(id) = state.claim.get(name) {
                private.insert(name.to_owned(), id.clone());
            }
        }
        session
    });
    plain::create_channel(
        step,
        NewPlainChannel { uri: uri.clone(), state: state.into(), session, private },
    );
    step.note_changed(&uri);
}

/// Records what happened in a terminal. What cannot be written now is recorded later.
pub(crate) fn change(step: &mut Step, uri: &ChannelUri, changes: Vec<TerminalChange>) {
    if step.unwritable().is_some() {
        if step.recovery_mut().postpone_output(uri, changes) {
            act_outside(step, uri, TerminalTask::Redraw);
        }
        return;
    }
    if step.find_plain(uri).is_none() {
        return step.start_task(BackgroundTask::ApplyTerminal(uri.clone(), changes));
    }
    // The process says it once: if this step cannot be written it is done again.
    let again = BackgroundTask::ApplyTerminal(uri.clone(), changes.clone());
    step.recovery_mut().note_done(again);
    apply_changes(step, uri, changes);
}

/// The same in a terminal that is in memory.
pub(crate) fn apply_changes(step: &mut Step, uri: &ChannelUri, changes: Vec<TerminalChange>) {
    for change in changes {
        let (kind, fields) = match change {
            TerminalChange::Data(data) => (ActionKind::TerminalData, json!({"data": data})),
            TerminalChange::Cleared => (ActionKind::TerminalCleared, json!({})),
            TerminalChange::CommandDetection => {
                (ActionKind::TerminalCommandDetectionAvailable, json!({}))
            }
            TerminalChange::CommandStarted { id, line, at } => (
                ActionKind::TerminalCommandExecuted,
                json!({"commandId": id, "commandLine": line, "timestamp": at}),
            ),
            TerminalChange::CommandFinished { id, exit_code, duration_ms } => (
                ActionKind::TerminalCommandFinished,
                with_exit_code(json!({"commandId": id, "durationMs": duration_ms}), exit_code),
            ),
            TerminalChange::Title(title) => {
                (ActionKind::TerminalTitleChanged, json!({"title": title}))
            }
            TerminalChange::Directory(path) => {
                (ActionKind::TerminalCwdChanged, json!({"cwd": wire::file_uri::uri_of(&path)}))
            }
            TerminalChange::Exited { exit_code } => {
                (ActionKind::TerminalExited, with_exit_code(json!({}), exit_code))
            }
        };
        step.act_as_host(uri, kind, fields);
    }
}

fn with_exit_code(mut fields: Value, exit_code: Option<i64>) -> Value {
    if let Some(code) = exit_code {
        fields["exitCode"] = json!(code);
    }
    fields
}

/// What a client did to a terminal that it may do it to.
pub(crate) fn act_for_client(
    step: &mut Step,
    uri: &ChannelUri,
    verb: TerminalAction,
    action: Action,
    sender: &Sender,
) {
    match verb {
        TerminalAction::Input => {
            let data = action.text("data").unwrap_or_default().to_owned();
            step.answer_unchanged(uri, &action, Some(sender));
            act_outside(step, uri, TerminalTask::Write(TypedText(data)));
        }
        TerminalAction::Resized => {
            let wanted = (action.integer("cols"), action.integer("rows"));
            step.act(uri, action, Some(sender));
            let (columns, rows) = (wanted.0.unwrap_or(0), wanted.1.unwrap_or(0));
            let real = (columns.clamp(1, COLUMNS_MAX), rows.clamp(1, ROWS_MAX));
            // Everyone is sent the size that it really has (H-276).
            let fields = json!({"cols": real.0, "rows": real.1});
            step.act_as_host(uri, ActionKind::TerminalResized, fields);
            let (columns, rows) = real;
            act_outside(step, uri, TerminalTask::Resize { columns, rows });
        }
        TerminalAction::Claimed => {
            step.act(uri, action, Some(sender));
            set_holder_outside(step, uri);
        }
        TerminalAction::Cleared => {
            step.act(uri, action, Some(sender));
            act_outside(step, uri, TerminalTask::Clear);
        }
        TerminalAction::TitleChanged => {
            step.act(uri, action, Some(sender));
        }
    }
}

/// The largest terminal there is.
pub(crate) const COLUMNS_MAX: i64 = 500;
pub(crate) const ROWS_MAX: i64 = 200;

fn set_holder_outside(step: &mut Step, uri: &ChannelUri) {
    let Some(state) = terminal(step, uri) else {
        debug_assert!(false, "{uri} was claimed in this step, so it is there");
        return;
    };
    let holder = match (state.claim["kind"].as_str(), state.claim.get("toolCallId")) {
        (Some("session"), Some(_)) => TerminalHolder::Call,
        (Some("session"), None) => TerminalHolder::Chat,
        (Some(_) | None, _) => TerminalHolder::Client,
    };
    act_outside(step, uri, TerminalTask::Hold(holder));
}

/// A client is gone: what it holds goes back to its session after a while (G-56).
pub(crate) fn start_grace(step: &mut Step, client_id: &str) {
    let held = step.channels().terminals_held_by(client_id);
    let grace_ms = step.limits().active_client_grace_ms;
    for terminal in held {
        let client_id = client_id.to_owned();
        let timer = Timer::TerminalGrace { terminal, client_id };
        step.wake_in(timer, grace_ms);
    }
}

/// A client that holds a terminal had its time to come back.
pub(crate) fn end_grace(step: &mut Step, uri: &ChannelUri, client_id: &str) {
    let holds = terminal(step, uri).is_some_and(|state| state.holder() == Some(client_id));
    if !holds || step.peers().is_connected(client_id) || step.unwritable().is_some() {
        return; // it came back, or somebody else has it; or nothing can be written, and anybody may claim it
    }
    let private = step.find_plain(uri).map(|plain| plain.private().clone()).unwrap_or_default();
    let (Some(session), Some(chat)) = (private.get("session"), private.get("chat")) else {
        return; // it belongs to no session: whoever wants it may claim it
    };
    let mut claim = json!({"kind": "session", "session": session, "chat": chat});
    if is_call_running(step, &private) {
        // Without its call the claim would say that the call is to go on without the command.
        for name in OF_CALL {
            claim[name] = private.get(name).cloned().unwrap_or_default();
        }
    }
    step.act_as_host(uri, ActionKind::TerminalClaimed, json!({"claim": claim}));
    set_holder_outside(step, uri);
}

/// Whether the call that a terminal was shown for still runs.
fn is_call_running(kernel: &Kernel, private: &Object) -> bool {
    let text = |name: &str| private.get(name).and_then(Value::as_str);
    let chat = text("chat").and_then(|chat| ChannelUri::parse(chat).ok());
    let chat = chat.and_then(|chat| kernel.find_chat(&chat));
    let turn =
        chat.filter(|chat| chat.run().is_some()).and_then(|chat| chat.state().active_turn.as_ref());
    let turn = turn.filter(|turn| text("turnId") == Some(turn.id.as_str()));
    let call =
        turn.zip(text("toolCallId")).and_then(|(turn, id)| turn.parts.get(id)?.0.get("toolCall"));
    call.is_some_and(|call| call["status"] == "running")
}

/// The process of a terminal ended with the host that ran it; what it showed last stays.
pub(crate) fn close_interrupted(step: &mut Step, uri: &ChannelUri) {
    let Some(state) = terminal(step, uri).filter(|state| state.is_running()) else {
        return; // one that was ended meanwhile stays as it is
    };
    // Whatever sequence was begun ends; the last row scrolls up for it.
    let rows = state.rows.unwrap_or(24).clamp(1, ROWS_MAX);
    let data = format!("\x18\x1b[0m\x1b[r\x1b[{rows};1H\r\n{HOST_ENDED}\r\n");
    step.act_as_host(uri, ActionKind::TerminalData, json!({"data": data}));
    step.act_as_host(uri, ActionKind::TerminalExited, json!({}));
}

/// Ends a terminal that is in memory: its process, its channel, its entry in the list.
pub(crate) fn dispose(step: &mut Step, uri: &ChannelUri) {
    act_outside(step, uri, TerminalTask::Kill);
    plain::end_channel(step, uri);
    change_list(step, |list| list.retain(|entry| entry["resource"] != uri.as_str()));
}

/// Ends what a session has of them, before the session itself ends.
pub(crate) fn end_of_session(step: &mut Step, session: &ChannelUri) {
    let own = step.channels().plain_of(session);
    for uri in own.iter().filter(|uri| terminal(step, uri).is_some()).cloned().collect::<Vec<_>>() {
        act_outside(step, &uri, TerminalTask::Kill);
    }
    let own: Vec<&str> = own.iter().map(ChannelUri::as_str).collect();
    change_list(step, |list| {
        list.retain(|entry| {
            let is_own = entry["resource"].as_str().is_some_and(|uri| own.contains(&uri));
            !is_own && entry["claim"]["session"] != session.as_str()
        });
    });
}

/// The root's list says what a terminal says. Commands of agents leave it with their end: who saw them finds them by their calls.
pub(crate) fn sync_list(step: &mut Step, uri: &ChannelUri) {
    let Some(state) = terminal(step, uri) else {
        return; // a channel of another kind
    };
    let is_over = !state.is_running() && state.claim["kind"] == "session";
    let entry = (!is_over).then(|| {
        json!({
            "resource": uri.as_str(),
            "title": state.title,
            "claim": state.claim,
            "lifecycle": state.lifecycle,
        })
    });
    change_list(step, |list| {
        let known = list.iter().position(|known| known["resource"] == uri.as_str());
        match (known.and_then(|at| list.get_mut(at)), entry) {
            (Some(known), Some(entry)) => *known = entry,
            (None, Some(entry)) => list.push(entry),
            (Some(_), None) => list.retain(|known| known["resource"] != uri.as_str()),
            (None, None) => {}
        }
    });
}

fn change_list(step: &mut Step, change: impl FnOnce(&mut Vec<Value>)) {
    let before = listed_terminals(step);
    let mut after = before.clone();
    change(&mut after);
    if after != before {
        let action = Action::host(ActionKind::RootTerminalsChanged, json!({"terminals": after}));
        step.act_on_root(&action, None);
    }
}

/// The terminals of the root's list.
pub(crate) fn listed_terminals(kernel: &Kernel) -> Vec<Value> {
    let list = kernel.channels().root().extra.get("terminals");
    list.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn terminal<'a>(kernel: &'a Kernel, uri: &ChannelUri) -> Option<&'a TerminalState> {
    kernel.find_plain(uri)?.state().terminal()
}

fn act_outside(step: &mut Step, uri: &ChannelUri, act: TerminalTask) {
    let terminal = uri.clone();
    step.effect(Effect::Terminal { terminal, act });
}
