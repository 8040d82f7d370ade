//! `/rewind` without a number: the user chose one in the turn of the command. What is cut off includes that turn, so it begins
//! anew, as if the number had been typed, and stays as the record of it.

use compositor::Part;
use serde_json::json;
use wire::{ActionKind, ChannelUri, Object};

use crate::host_command;
use crate::record_message::record_message;
use crate::state::Step;
use crate::submission::{HostAction, Submission};
use crate::turn::start::begin_turn;

/// Cuts turns off, the active one with them, and begins it anew.
pub(crate) fn rewind(step: &mut Step, uri: &ChannelUri, turns: usize) {
    let chat = step.chat(uri);
    let active = chat.state().active_turn.as_ref();
    let message = active.and_then(|turn| turn.message.as_object().cloned());
    let author = chat.private().author.clone();
    let Some((action, left)) = host_command::rewind_chosen(step, uri, turns) else {
        return; // the turn ended in an error that says why
    };
    let submission = submission_of(message.unwrap_or_default(), action);
    let turn_id = step.chat(uri).free_turn_id(step.seq());
    let fields = json!({
        "turnId": turn_id,
        "startedAt": step.now().to_rfc3339(),
        "message": submission.message,
    });
    let started = step.act_as_host(uri, ActionKind::ChatTurnStarted, fields);
    assert!(started, "a chat whose turn was cut off takes another");
    let mut submitted = record_message(step, uri, submission, Some(turn_id));
    submitted.commands = left;
    begin_turn(step, uri, author, submitted);
}

/// The message as if the number had been typed.
fn submission_of(mut message: Object, action: HostAction) -> Submission {
    let text = format!("{} {}", action.name, action.raw);
    message.insert("text".to_owned(), json!(text));
    let command = json!({"type": "command", "id": action.name, "args": {"raw": action.raw}});
    let parts = match Part::from_value(command) {
        Ok(command) => vec![command],
        Err(error) => unreachable!("a command is a part: {error}"),
    };
    Submission { parts, actions: vec![action], reaches_model: false, ..Submission::plain(message) }
}
