//! A call whose server wants another token in the middle of it: it waits until somebody signed in, and is made again once
//! (MC-14, H-201 to H-203).
//!
//! Promises: nothing of a call is done twice: the server refused the request before it did anything. A person can give the call
//! up; the turn does not count the time.
//! Must not know: tokens, who brings them.

use agent_api::{AgentEvent, AgentReply, TurnOver};
use tokio::sync::watch;

use super::super::call_events::ToolContext;
use super::lifecycle::auth_requirement;
use crate::mcp::{McpServer, ServerState};

/// How the wait ended.
pub(super) enum SignIn {
    /// There may be a token now: the call can be made again.
    Done,
    /// Somebody ended the call instead.
    GivenUp,
    /// The server wants none: it failed, was stopped, or is ready again.
    NotWanted,
}

/// Waits for a token, if the server of a call wants one.
pub(super) async fn wait_for_sign_in(
    context: &ToolContext<'_>,
    call: u64,
    server: &McpServer,
) -> Result<SignIn, TurnOver> {
    let mut states = server.states();
    server.wait_until_settled().await; // what it wants is being found out
    let ServerState::TokenWanted(request) = server.state() else { return Ok(SignIn::NotWanted) };
    let auth = auth_requirement(&request);
    let asked = context.events.ask(AgentEvent::ToolAuthRequired { call, auth });
    tokio::select! {
        biased;
        reply = asked => match reply? {
            AgentReply::ToolEnded { .. } => Ok(SignIn::GivenUp),
            _ => Err(TurnOver), // replies are routed by what they answer
        },
        () = wait_for_token(&mut states) => {
            let resolved = AgentEvent::ToolAuthResolved { call };
            context.events.send(resolved).await?;
            Ok(SignIn::Done)
        }
    }
}

/// Waits until a server neither wants a token nor tries one.
async fn wait_for_token(states: &mut watch::Receiver<ServerState>) {
    let is_over = |state: &ServerState| match state {
        ServerState::TokenWanted(_) | ServerState::Starting => false,
        ServerState::Ready | ServerState::Stopped | ServerState::Failed(_) => true,
    };
    // A server that is gone is answered by its next call.
    let _ = states.wait_for(is_over).await;
}
