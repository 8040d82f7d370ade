//! The end of a turn: complete, cancelled, or in an error. It gets its row, its run is over, and its workers stop. Unless it
//! completed, what waits is held (G-08).

use agent_api::AgentError;
use serde_json::{Value, json};
use wire::reduce::Reduced;
use wire::{Action, ActionKind, ChannelUri};

use crate::follow_up::FollowUp;
use crate::io::Effect;
use crate::record::Record;
use crate::state::{Sender, Step};
use crate::steering::queue_leftover;

/// The message of a turn that the host's end interrupted.
pub(crate) const STOPPED: &str = "the host was stopped; resume the turn to go on";

/// Takes the run of a chat away, if it has one: it is stopped, and its workers end with it.
pub(crate) fn stop_run(step: &mut Step, chat: &ChannelUri) {
    if let Some(run) = step.take_run(chat) {
        step.effect(Effect::StopTurn { run: run.id() });
        step.follow_up(FollowUp::CancelWorkers(run.workers()));
    }
}

/// A client cancels the active turn.
pub(crate) fn cancel_turn(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    if step.act(uri, action, Some(sender)) == Reduced::Changed {
        let session = step.chat(uri).session().clone();
        step.session_mut(&session).set_start_when_ready(uri, false);
        stop_run(step, uri);
        record_ended_turn(step, uri);
        queue_leftover(step, uri);
    }
}

/// Ends the active turn, whose agent is gone or going, in an error that can be resumed.
pub(crate) fn end_without_agent(
    step: &mut Step,
    uri: &ChannelUri,
    error_type: &str,
    message: &str,
) {
    stop_run(step, uri);
    let failure = AgentError {
        error_type: error_type.to_owned(),
        message: message.to_owned(),
        resumable: true,
    };
    end_turn_in_error(step, uri, failure);
}

/// Ends the active turn in an error; a chat without one has nothing to end.
pub(crate) fn end_turn_in_error(step: &mut Step, uri: &ChannelUri, failure: AgentError) {
    let Some(turn_id) = step.active_turn_id(uri) else {
        return; // it ended by itself before the failure was known
    };
    let error = json!({"errorType": failure.error_type, "message": failure.message});
    let mut part = json!({"kind": "error", "error": error});
    if failure.resumable {
        part["resumable"] = Value::Bool(true);
    }
    end_turn(step, uri, ActionKind::ChatError, json!({"turnId": turn_id, "part": part}));
}

/// Ends the active turn. An end that the calendar has no room for takes no time: a turn must end (H-174). After one that
/// completed what waits goes on, after any other it is held (G-08).
pub(crate) fn end_turn(step: &mut Step, uri: &ChannelUri, kind: ActionKind, mut fields: Value) {
    for duration in [step.chat(uri).turn_duration(step.now()), 0] {
        fields["duration"] = json!(duration);
        if step.act_as_host(uri, kind, fields.clone()) {
            break;
        }
    }
    record_ended_turn(step, uri);
    match kind {
        ActionKind::ChatTurnComplete => step.follow_up(FollowUp::StartQueue(uri.clone())),
        _ => queue_leftover(step, uri),
    }
}

/// The active turn became a completed one: it gets its row.
fn record_ended_turn(step: &mut Step, uri: &ChannelUri) {
    if let Some(run) = step.take_run(uri) {
        step.follow_up(FollowUp::CancelWorkers(run.workers()));
    }
    let id = step.id_of(uri);
    let Some(ended) = step.chat_mut(uri).end_turn() else {
        debug_assert!(false, "a turn that takes no time can always end");
        return;
    };
    let turn_id = ended.turn.id.clone();
    step.record(Record::Turn { chat: id, n: ended.n, turn: ended.turn });
    if ended.removes_checkpoint {
        step.record(Record::Checkpoint { chat: id, turn_id, data: None });
    }
    let session = step.chat(uri).session().clone();
    step.touch_modified(&session);
    step.follow_up(FollowUp::ReportWorker(uri.clone()));
}
