//! What the host does of its own accord in channels that may have to be loaded first.

use agent_api::{AgentError, SuggestedTitle, Worker};
use wire::ChannelUri;

use crate::agent_word::SessionNews;
use crate::io::RunId;

/// A piece of work that may have to wait for the journal's answer.
#[derive(Debug, Clone)]
pub(crate) enum BackgroundTask {
    /// A chat may have an active turn without an agent: it ends in a resumable error (H-090).
    CloseInterruptedTurn(ChannelUri),
    /// A session from before the restart: start its agent if it was being created, start grace periods again.
    ReviveSession(ChannelUri),
    /// The agent is ready for the session, or never will be.
    FinishSessionStart(ChannelUri, Result<(), AgentError>),
    EndGrace {
        session: ChannelUri,
        client_id: String,
    },
    DisposeIfEmpty(ChannelUri),
    /// A queue was set while its session was being created, and that is ready now.
    StartQueue(ChannelUri),
    /// An agent wants a worker, under a URI that must be free.
    StartWorker {
        chat: ChannelUri,
        run: RunId,
        call: u64,
        worker: Box<Worker>,
    },
    /// A chat is to be branched, into one whose URI must be free.
    Branch {
        chat: ChannelUri,
        from: ChannelUri,
        turn_id: String,
        title: String,
    },
    /// An agent has a better title for a chat's session.
    ReplaceTitle(ChannelUri, SuggestedTitle),
    /// An agent says something of a session between turns.
    ApplyNews(SessionNews),
    /// A client left a session while that could not be recorded.
    RemoveActiveClient {
        session: ChannelUri,
        client_id: String,
    },
}

impl BackgroundTask {
    /// The channel that must be in memory, or be known not to exist, before the task can be done.
    pub(crate) fn channel(&self) -> &ChannelUri {
        match self {
            Self::CloseInterruptedTurn(uri)
            | Self::ReviveSession(uri)
            | Self::FinishSessionStart(uri, _)
            | Self::ReplaceTitle(uri, _)
            | Self::DisposeIfEmpty(uri)
            | Self::StartQueue(uri)
            | Self::StartWorker { chat: uri, .. }
            | Self::Branch { chat: uri, .. }
            | Self::RemoveActiveClient { session: uri, .. }
            | Self::EndGrace { session: uri, .. } => uri,
            Self::ApplyNews(news) => &news.session,
        }
    }
}
