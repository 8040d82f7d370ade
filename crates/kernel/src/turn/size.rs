//! The largest turn: it travels whole, in snapshots and in pages, so it must fit into a message with room to spare. A turn that
//! reaches the bound ends in an error that names it; its response up to then stays.

use agent_api::AgentError;
use wire::ChannelUri;

use super::end::{end_turn_in_error, stop_run};
use crate::state::Step;

/// Whether so many bytes more fit into the active turn. If they do not, it ends.
pub(crate) fn make_room(step: &mut Step, uri: &ChannelUri, bytes: usize) -> bool {
    let most = step.limits().turn_bytes_max;
    let fits = |turn_bytes: usize| turn_bytes.saturating_add(bytes) <= most;
    let turn_bytes = step.chat(uri).active_turn_bytes();
    // What was replaced since it was last counted does not count.
    if fits(turn_bytes) || fits(step.recount_active_turn(uri)) {
        return true;
    }
    end_large_turn(step, uri);
    false
}

/// Ends the active turn if what was recorded made it too large.
pub(crate) fn bound_turn(step: &mut Step, uri: &ChannelUri) {
    let has_turn = step.active_turn_id(uri).is_some();
    if has_turn && step.recount_active_turn(uri) > step.limits().turn_bytes_max {
        end_large_turn(step, uri);
    }
}

fn end_large_turn(step: &mut Step, uri: &ChannelUri) {
    let most = step.limits().turn_bytes_max;
    stop_run(step, uri);
    let failure = AgentError {
        error_type: "turnTooLarge".to_owned(),
        message: format!(
            "this turn is as large as a turn may be, {most} bytes (`turn_bytes_max`), and ends here; send a message to go on"
        ),
        resumable: false,
    };
    end_turn_in_error(step, uri, failure);
    debug_assert!(step.active_turn_id(uri).is_none(), "a turn that is too large has ended");
}
