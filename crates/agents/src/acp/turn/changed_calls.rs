//! Calls that their agent changes, or takes back, while people decide about them (AG-31c).
//!
//! Promises: what people allowed is what they saw. A yes that was on its way to the older question allows nothing, and the call that it
//! was about ends with words.

use agent_api::{AgentEvent, AgentReply, ToolResult};
use agent_client_protocol_schema::v1 as acp;

use super::super::mapper::AskedPermission;
use super::TurnStopped;
use super::run::{AskedUser, RunningTurn};

/// What becomes of a call that somebody allowed when its agent did not ask for that any more.
const NOT_ASKED_ANY_MORE: &str =
    "Not allowed: its agent changed it, or went on without an answer, before the answer came.";

impl RunningTurn<'_> {
    /// The agent said that a call is another one than the one that people are asked about: they decide about that one, and the agent
    /// waits on.
    pub(super) async fn replace_question(
        &mut self,
        before: u64,
        asked: AskedPermission,
    ) -> Result<(), TurnStopped> {
        let mut open = self.open.iter();
        let open = open.find(|(_, open)| open.call() == Some(before));
        let id = open.map(|(id, _)| id.clone());
        let removed = id.and_then(|id| self.open.remove_entry(&id));
        let Some((id, AskedUser::Permission { options, .. })) = removed else {
            debug_assert!(false, "a call that is asked about has an open question");
            self.mapper.decide(asked.call, false);
            return Ok(());
        };
        // An answer for good was offered for the older call, and may name it.
        let once =
            |option: &acp::PermissionOption| option.kind != acp::PermissionOptionKind::AllowAlways;
        let options = options.into_iter().filter(once).collect();
        let withdrawn = AgentEvent::ConfirmationWithdrawn { call: before };
        self.turn.events.send(withdrawn).await?;
        self.decide_or_ask(id, asked, options).await
    }

    /// Somebody answered what was taken back or changed meanwhile: the agent has its answer, or another question is open. A call that
    /// they allowed does not run.
    pub(super) async fn end_unasked(
        &mut self,
        call: Option<u64>,
        reply: &AgentReply,
    ) -> Result<(), TurnStopped> {
        let (Some(call), AgentReply::ToolDecided { approved: true, .. }) = (call, reply) else {
            return Ok(()); // nothing was allowed
        };
        let completed = AgentEvent::ToolCompleted {
            call,
            result: ToolResult::failed("Not run", NOT_ASKED_ANY_MORE),
            review: false,
        };
        Ok(self.turn.events.send(completed).await?)
    }
}
