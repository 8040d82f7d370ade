//! A client's action as it came, decoded once.

use wire::ActionKind;
use wire::ChannelUri;
use wire::action::ActionError;

use crate::bodies::SentAction;

/// A client's action, where it was sent to, and how its sender will recognise it.
pub(crate) struct ClientDispatch {
    pub channel: ChannelUri,
    pub client_seq: i64,
    pub sent: SentAction,
    /// Its type, or what is wrong with it.
    pub kind: Result<ActionKind, ActionError>,
}
