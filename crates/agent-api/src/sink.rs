//! Where a turn's events go, and where the replies to some of them come from.
//!
//! Promises: events arrive in the order they are sent. Several may wait for replies at once.
//! Must not know: who receives the events.

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use wire::Object;

use crate::event::AgentEvent;
use crate::host::HostServices;
use crate::reply::AgentReply;
use crate::section::Section;
use crate::tool::ClientToolOffer;

/// Where a turn's events go. Bounded: a slow host slows the agent down.
#[async_trait]
pub trait EventSink: HostServices {
    async fn send(&self, event: AgentEvent) -> Result<(), TurnOver>;

    /// Sends an event that is answered, and waits for the answer. Panics if nothing answers it
    /// ([`AgentEvent::awaits`]): that would be a wait without an end.
    async fn ask(&self, event: AgentEvent) -> Result<AgentReply, TurnOver>;

    /// Stores what the agent wants to know again in later turns of this chat ([`AgentEvent::ChatNotes`]); returns when it is on
    /// the disk.
    async fn note_chat(&self, notes: Bytes) -> Result<(), TurnOver>;

    /// Waits until a steering message waits that was not returned before, or that was changed since. It goes on waiting until
    /// [`AgentEvent::SteeringTaken`] is sent. May be dropped at any time: no message is lost by that.
    async fn steering(&self) -> Result<WaitingSteering, TurnOver>;

    /// The session's settings as they are now; a turn's own are those it began with.
    async fn settings(&self) -> Result<Object, TurnOver>;

    /// The tools that the active clients offer now.
    async fn client_tools(&self) -> Result<Vec<ClientToolOffer>, TurnOver>;

    /// Renders a system prompt: every agent does it here, so that clients can rewrite sections. Returns what the model is
    /// to read.
    async fn render(&self, sections: Vec<Section>) -> Result<Vec<Section>, TurnOver>;
}

/// A steering message that waits to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingSteering {
    /// The whole `Message`.
    pub message: Value,
    /// The name under which its parts are stored ([`HostServices::read_message`]).
    pub message_id: Option<String>,
    /// Its id among the messages that wait.
    pub pending_id: String,
}

/// The events have no receiver any more. The turn is over whatever the agent still does: return quietly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the turn is over")]
pub struct TurnOver;
