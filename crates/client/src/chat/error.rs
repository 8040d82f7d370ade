//! Why a chat could not be opened, or something could not be done in it, with messages that say what to do next.

use std::path::PathBuf;

use wire::ChannelUri;
use wire::uri::UriError;

use crate::{ClientError, SessionSummary};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChatError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the host offers no agent `{agent}`; it has: {}", offered.join(", "))]
    UnknownAgent { agent: String, offered: Vec<String> },
    #[error("the host offers no agent; start it without --no-scripted to get the scripted one")]
    NoAgent,
    #[error("`{provider}` cannot name a session: {why}")]
    BadProvider { provider: String, why: UriError },
    #[error("the agent `{0}` does not work in worktrees: leave --worktree out")]
    NoWorktrees(String),
    #[error("{0} is neither a session nor a chat")]
    NotAChat(ChannelUri),
    #[error("no session of the host has the chat {0}")]
    NoSessionOf(ChannelUri),
    /// The newest session elsewhere, for the message to the user.
    #[error("no session was used in {} yet", directory.display())]
    NoSessionIn { directory: PathBuf, newest: Option<Box<SessionSummary>> },
    #[error("there is no session yet")]
    NoSessionYet,
    #[error("the session could not be started: {0}")]
    CreationFailed(String),
    #[error("the session {0} has no chat yet; try again later")]
    NoChatIn(ChannelUri),
    #[error("the host sent an invalid channel URI: {0}")]
    BadUri(#[from] UriError),
    #[error("the chat is gone: its session was disposed of")]
    Gone,
    #[error("the host did not take the permission mode `{0}`, so nothing was sent")]
    ModeNotTaken(String),
    #[error("the host did not take the budget, so nothing was sent")]
    BudgetNotTaken,
    #[error("the agent is working: there is nothing to resume")]
    TurnRunning,
    #[error("there is no turn to resume")]
    NoTurn,
    #[error("the last turn did not fail in a way that can be resumed")]
    NotResumable,
    #[error("the turns before it are not loaded here; `/rewind` goes back to any of them")]
    EarlierTurnsNotHeld,
    #[error("the host did not create a branch of this chat in time")]
    NoBranch,
    #[error("the host did not suggest completions in time")]
    CompletionsTimedOut,
}

impl ChatError {
    /// The trouble with the connection or the host behind this, if that is what it is.
    pub fn client_error(&self) -> Option<&ClientError> {
        match self {
            Self::Client(error) => Some(error),
            _ => None,
        }
    }
}
