//! Branching a chat: the host copies it, and the copy shows up in the session.

use std::time::Duration;

use wire::ChannelUri;

use super::{ChatError, OpenChat, Sent};

/// How long the host may take to show a branch.
const BRANCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a request to branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    Created(ChannelUri),
    /// It waits for the turn that is running.
    Queued,
    /// The host could not; its turn says why.
    Failed,
}

impl OpenChat {
    /// Has the host branch this chat under a name, if one is given, and waits for what comes of it.
    pub async fn branch(&mut self, name: &str) -> Result<Branch, ChatError> {
        let before = self.branches();
        let command = format!("/branch {name}");
        let turn_id = match self.send(command.trim_end())? {
            Sent::Started { turn_id } => turn_id,
            Sent::Queued => return Ok(Branch::Queued),
        };
        let Self { live, feed, session, chat, .. } = self;
        let look = || {
            let state = live.session(session);
            let branches = state.map_or(Vec::new(), |state| branches_of(&state, chat));
            if let Some(created) = branches.iter().find(|branch| !before.contains(branch)) {
                return Ok(Some(Branch::Created(ChannelUri::parse(created)?)));
            }
            let state = live.chat(chat).ok_or(ChatError::Gone)?;
            let active = state.active_turn.as_ref().map(|turn| turn.id.as_str());
            Ok((active != Some(turn_id.as_str())).then_some(Branch::Failed))
        };
        let waiting = feed.wait_until(live, look);
        tokio::time::timeout(BRANCH_TIMEOUT, waiting).await.unwrap_or(Err(ChatError::NoBranch))
    }

    fn branches(&self) -> Vec<String> {
        let state = self.session_state();
        state.map_or(Vec::new(), |state| branches_of(&state, &self.chat))
    }
}

/// The chats of a session that were forked from this one.
fn branches_of(session: &wire::state::SessionState, chat: &ChannelUri) -> Vec<String> {
    let forks = session.chats.iter().filter(|summary| {
        let origin = summary.extra.get("origin");
        origin.is_some_and(|origin| origin["kind"] == "fork" && origin["chat"] == chat.as_str())
    });
    forks.map(|summary| summary.resource.clone()).collect()
}
