//! The events of an open chat, beside the state that can be looked at.

use wire::Action;

use crate::ClientError;

#[derive(Debug, Clone, PartialEq)]
pub enum ChatEvent {
    /// The state of the chat or of its session may have changed.
    Changed,
    /// The host refused an action of this client; what it did to the state ahead of time is undone.
    Refused {
        what: Undelivered,
        reason: String,
    },
    /// The connection was lost before the host answered an action, and sending it again could do what is no longer meant.
    /// The state shows whether the host took it.
    NotResent {
        what: Undelivered,
    },
    /// The connection was lost; another is being opened.
    ConnectionLost {
        why: ClientError,
    },
    /// An attempt to connect again failed; the next one follows.
    ReconnectFailed {
        why: ClientError,
    },
    Reconnected,
}

/// What an action that did not get through was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// The turn it was to start.
    pub turn_id: Option<String>,
    /// The text of the message it carried.
    pub text: Option<String>,
}

impl Undelivered {
    pub(super) fn of(action: &Action) -> Self {
        let turn_id = action.text("turnId");
        let message = action.get("message");
        let text = message.and_then(|message| message["text"].as_str());
        Self {
            turn_id: turn_id.filter(|_| action.name() == "chat/turnStarted").map(str::to_owned),
            text: text.map(str::to_owned),
        }
    }
}
