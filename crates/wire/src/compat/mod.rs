//! Older peers: what their messages need before they are read, and what they are not sent. One file per step.
//!
//! Pure functions over JSON; each does nothing for a generation that needs nothing.

mod v0_9;

use serde_json::Value;

use crate::{ActionKind, Generation, Object};

/// Makes an action of an older client one that the current types read.
pub fn up_action(generation: Generation, action: &mut Value) {
    match generation {
        Generation::V1_0 => {}
        Generation::V0_9 => v0_9::up_action(action),
    }
}

/// The same for the params of `createSession`.
pub fn up_create_session(generation: Generation, params: &mut Value) {
    match generation {
        Generation::V1_0 => {}
        Generation::V0_9 => v0_9::up_create_session(params),
    }
}

/// Whether clients of a generation know an action, so that it may be sent to them (H-026).
pub fn knows(generation: Generation, kind: ActionKind) -> bool {
    kind.since() <= generation.oldest_version()
}

/// Takes from a session summary, whole or partial, what a generation does not know.
pub fn down_summary(generation: Generation, summary: &mut Object) {
    match generation {
        Generation::V1_0 => {}
        Generation::V0_9 => v0_9::down_summary(summary),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_current_generation_is_left_alone() {
        let bare =
            json!({"type": "session/activeClientSet", "activeClient": {"customizations": [{}]}});
        let mut action = bare.clone();
        up_action(Generation::V1_0, &mut action);
        assert_eq!(action, bare);
        let mut summary = Object::from_iter([("chats".to_owned(), json!([]))]);
        down_summary(Generation::V1_0, &mut summary);
        assert_eq!(summary.len(), 1);
    }

    #[test]
    fn an_older_client_is_sent_what_it_knows() {
        assert!(knows(Generation::V0_9, ActionKind::ChatTurnStarted));
        assert!(!knows(Generation::V0_9, ActionKind::ChatIsReadChanged));
        assert!(knows(Generation::V1_0, ActionKind::ChatIsReadChanged));
    }
}
