//! What the host does of its own accord in channels that may have to be loaded first.

use agent_api::{AgentError, SuggestedTitle, TerminalChange, Worker};
use wire::ChannelUri;

use crate::agent_word::SessionNews;
use crate::changeset_work::TurnChangesReport;
use crate::io::RunId;

/// A piece of work that may have to wait for the journal's answer.
#[derive(Debug, Clone)]
pub(crate) enum BackgroundTask {
    /// A chat may have an active turn without an agent: it ends in a resumable error (H-090).
    CloseInterruptedTurn(ChannelUri),
    /// The process of a terminal ended with the host that ran it.
    CloseInterruptedTerminal(ChannelUri),
    /// What happened in a terminal.
    ApplyTerminal(ChannelUri, Vec<TerminalChange>),
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
    /// A turn changed files.
    RecordChanges(Box<TurnChangesReport>),
    /// An agent has a better title for a chat's session.
    ReplaceTitle(ChannelUri, SuggestedTitle),
    /// What clients know of the agents is old; always in the root channel.
    AnnounceAgents(ChannelUri),
    /// An agent says something of a session between turns.
    ApplyNews(SessionNews),
    /// A chat's session does not work in one of its directories any more, but perhaps in another in its place.
    LoseDirectory {
        chat: ChannelUri,
        directory: String,
        replacement: Option<String>,
    },
    /// A chat may be moved now, or may not any more.
    SetMovable(ChannelUri),
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
            | Self::CloseInterruptedTerminal(uri)
            | Self::ApplyTerminal(uri, _)
            | Self::ReviveSession(uri)
            | Self::FinishSessionStart(uri, _)
            | Self::ReplaceTitle(uri, _)
            | Self::AnnounceAgents(uri)
            | Self::DisposeIfEmpty(uri)
            | Self::StartQueue(uri)
            | Self::SetMovable(uri)
            | Self::StartWorker { chat: uri, .. }
            | Self::Branch { chat: uri, .. }
            | Self::LoseDirectory { chat: uri, .. }
            | Self::RemoveActiveClient { session: uri, .. }
            | Self::EndGrace { session: uri, .. } => uri,
            Self::ApplyNews(news) => &news.session,
            Self::RecordChanges(changed) => &changed.changeset,
        }
    }
}
