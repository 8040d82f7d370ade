//! May a client start, cancel or resume a turn?

use serde_json::Value;
use wire::Action;
use wire::state::{ChatState, Outcome};
use wire::time::add_ms_to_rfc3339;

use crate::channels::{Chat, HOST_LIKE_IDS_MAX, is_host_like};
use crate::message;
use crate::pause::HandlerAnswers;
use crate::refusal::Refusal;
use crate::state::Kernel;

const CENTURY_MS: i64 = 100 * 366 * 24 * 3_600 * 1_000;

/// Longest turn id taken from a client, in bytes.
const TURN_ID_BYTES_MAX: usize = 256;

/// H-170, G-09, G-12. `used` says whether the turn id was used before.
pub(crate) fn check_start(
    kernel: &Kernel,
    chat: &Chat,
    action: &mut Action,
    used: bool,
    answers: &HandlerAnswers,
) -> Result<(), Refusal> {
    let turn_id = action.text("turnId").unwrap_or("");
    if turn_id.is_empty() || turn_id.len() > TURN_ID_BYTES_MAX {
        return Err(Refusal(format!("`turnId` must have 1 to {TURN_ID_BYTES_MAX} bytes")));
    }
    let active = chat.active_turn_id();
    if used || active == Some(turn_id) {
        return Err(Refusal::because("this turn id was used before"));
    }
    if active.is_some() {
        return Err(Refusal::because("a turn is already running in this chat"));
    }
    let too_many = chat.private().host_like_turn_ids.len() >= HOST_LIKE_IDS_MAX;
    if too_many && is_host_like(turn_id, kernel.seq().0) {
        return Err(Refusal::because("ids of this form are the host's own"));
    }
    if action.present("queuedMessageId").is_some() {
        return Err(Refusal::because("only the host starts queued messages"));
    }
    // Every end of the turn adds a duration to it, so there must be room for one (H-171).
    let started_at = action.text("startedAt");
    if started_at.and_then(|text| add_ms_to_rfc3339(text, CENTURY_MS)).is_none() {
        return Err(Refusal::because("`startedAt` must be an RFC 3339 time"));
    }
    let Some(Value::Object(message)) = action.body.get_mut("message") else {
        return Err(Refusal::because("`message` is missing"));
    };
    message::check(kernel, chat, message, answers)
}

/// H-177, G-11.
pub(crate) fn check_cancel(state: &ChatState, action: &Action) -> Result<(), Refusal> {
    let turn = state.active_turn.as_ref();
    let turn = turn.filter(|turn| Some(turn.id.as_str()) == action.text("turnId"));
    let Some(turn) = turn else { return Err(Refusal::because("no turn with this id is running")) };
    let Some(duration) = action.integer("duration").filter(|ms| *ms >= 0) else {
        return Err(Refusal::because("`duration` must be an integer of at least 0"));
    };
    match add_ms_to_rfc3339(&turn.started_at, duration) {
        Some(_) => Ok(()),
        None => Err(Refusal::because("`duration` leads beyond the calendar")),
    }
}

/// H-176: the latest turn, ended in an error that can be resumed, and none running.
pub(crate) fn check_resume(state: &ChatState, action: &Action) -> Result<(), Refusal> {
    if state.active_turn.is_some() {
        return Err(Refusal::because("a turn is already running in this chat"));
    }
    match state.turns.last() {
        Some(turn) if action.text("turnId") != Some(turn.id.as_str()) => {
            Err(Refusal::because("only the latest turn can be resumed"))
        }
        Some(turn) if turn.outcome == (Outcome::Error { resumable: true }) => Ok(()),
        Some(_) => Err(Refusal::because("this turn did not end in an error that can be resumed")),
        None => Err(Refusal::because("there is no turn to resume")),
    }
}
