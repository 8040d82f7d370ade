//! Between 0.5.0 and 0.5.1: a page of turns is the answer to `fetchTurns`, the list of sessions is one page, and a session does
//! not say what it waits for.

use serde_json::{Value, json};

use super::{SnapshotOf, VersionStep, unchanged};
use crate::methods::Method;
use crate::state::status;
use crate::{Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_5_0,
    touches: unchanged::no_action,
    down_action: unchanged::down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action: unchanged::up_action,
    up_params,
};

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root | SnapshotOf::Plain(_) => {}
        SnapshotOf::Session { .. } => {
            // What a session waits for is all that changes its activity, and no action of theirs tells it: its chats say what
            // they do.
            state.shift_remove("inputNeeded");
            let bits = state.get("status").and_then(Value::as_u64);
            if let Some(bits) = bits.and_then(|bits| u32::try_from(bits).ok()) {
                let idle = status::with_activity(bits, status::IDLE);
                state.insert("status".to_owned(), json!(idle));
            }
        }
        SnapshotOf::Chat => {
            state.shift_remove("turnsNextCursor");
        }
    }
}

/// The field of the params of `fetchTurns` with the most turns that are wanted.
pub const PAGE_LIMIT: &str = "x-limit";

/// `before` is a cursor that names its turn; `limit` stays for the answer.
fn up_params(method: Method, params: &mut Object) {
    if method == Method::FetchTurns {
        let before = params.shift_remove("before").unwrap_or_default();
        let cursor = match before {
            Value::String(turn) => json!(format!("before:{turn}")),
            Value::Null => json!("newest"),
            other => other, // of a wrong type, and refused for it
        };
        params.insert("cursor".to_owned(), cursor);
        if let Some(limit) = params.shift_remove("limit") {
            params.insert(PAGE_LIMIT.to_owned(), limit);
        }
    }
}
