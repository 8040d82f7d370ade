//! Opening a chat: creating a session or finding one, and watching its chat.
//!
//! Promises: a session that is still being created is waited for; one that fails is reported with its reason.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use uuid::Uuid;
use wire::rpc::code;
use wire::{ChannelUri, Object};

use crate::{ClientError, LatestSession, Live};

use super::ChatError;
use super::creation::{add_token, failure_of};
use super::feed::UpdateFeed;

/// How long a new session may take to show its chat.
const CHAT_TIMEOUT: Duration = Duration::from_secs(30);
/// What the names of first chats begin with (G-26).
const DEFAULT_CHAT: &str = "ahp-chat://default/";
/// Turns of the history that are asked for by default.
const HISTORY_TURNS: usize = 20;

/// Which chat to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatSelector {
    /// A new session, with the named agent or the first one there is.
    NewSession { agent: Option<String> },
    /// The session that was used last in this directory; without one, in any.
    LatestSession { directory: Option<PathBuf> },
    /// This session, or this chat.
    Channel(ChannelUri),
}

/// What the branch of a worktree is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeBase {
    CheckedOut,
    Branch(String),
}

impl WorktreeBase {
    /// The settings of a session that ask for it.
    fn config(&self) -> Value {
        match self {
            Self::CheckedOut => json!({"isolation": "worktree"}),
            Self::Branch(branch) => json!({"isolation": "worktree", "branch": branch}),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where the agent of a new session is to work; the host's default if absent or not allowed.
    pub directory: Option<PathBuf>,
    /// A new session works in a git worktree with a branch of its own.
    pub worktree: Option<WorktreeBase>,
    /// Turns of the history that the host is to send.
    pub history_turns: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { directory: None, worktree: None, history_turns: HISTORY_TURNS }
    }
}

/// A chat that is watched, and its session.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) session: ChannelUri,
    pub(super) chat: ChannelUri,
    /// Something worth knowing about how it was opened.
    pub(super) notice: Option<String>,
    /// Whether the session was made for this chat.
    pub(super) is_new: bool,
}

pub(super) async fn open(
    live: &Live,
    feed: &mut UpdateFeed,
    selector: &ChatSelector,
    options: &OpenOptions,
) -> Result<Opened, ChatError> {
    let (named, notice) = match selector {
        ChatSelector::NewSession { agent } => {
            create_session(live, agent.as_deref(), options).await?
        }
        ChatSelector::Channel(uri) => (uri.clone(), None),
        ChatSelector::LatestSession { directory } => {
            (find_latest(live, directory.as_deref()).await?, None)
        }
    };
    watch(live, &named, options.history_turns).await?;
    let (session, chat) = match live.chat(&named) {
        Some(_) => (find_session_of(live, &named).await?, named),
        None => {
            let waiting = wait_for_chat(live, feed, &named);
            let chat = tokio::time::timeout(CHAT_TIMEOUT, waiting)
                .await
                .unwrap_or_else(|_| Err(ChatError::NoChatIn(named.clone())))?;
            watch(live, &chat, options.history_turns).await?;
            (named, chat)
        }
    };
    if live.session(&session).is_none() {
        live.subscribe(&session).await?;
    }
    Ok(Opened {
        session,
        chat,
        notice,
        is_new: matches!(selector, ChatSelector::NewSession { .. }),
    })
}

async fn find_latest(live: &Live, directory: Option<&Path>) -> Result<ChannelUri, ChatError> {
    let newest = match live.latest_session_in(directory).await? {
        LatestSession::Found(session) => return Ok(session.uri()?),
        LatestSession::Elsewhere(newest) => Some(Box::new(newest)),
        LatestSession::None => None,
    };
    Err(match directory {
        Some(directory) => ChatError::NoSessionIn { directory: directory.to_owned(), newest },
        None => ChatError::NoSessionYet,
    })
}

/// Watches a channel; of a chat's history no more is sent than is asked for.
async fn watch(live: &Live, channel: &ChannelUri, history_turns: usize) -> Result<(), ClientError> {
    let mut view = Object::new();
    view.insert("view".to_owned(), json!({"turns": history_turns}));
    live.subscribe_with(channel, view).await
}

/// Creates a session; if the host does not allow the directory, in its default one and with a notice that says so. A worktree is of
/// that directory: where one is wanted it is an error.
async fn create_session(
    live: &Live,
    agent: Option<&str>,
    options: &OpenOptions,
) -> Result<(ChannelUri, Option<String>), ChatError> {
    let provider = choose_provider(live, agent)?;
    let directory = options.directory.as_deref().and_then(file_uri);
    let config = options.worktree.as_ref().map(WorktreeBase::config);
    if let Some(config) = &config {
        check_worktrees(live, &provider, config).await?;
    }
    let uri = ChannelUri::parse(&format!("{provider}:/{}", Uuid::now_v7())); // G-27
    let session = match uri {
        Ok(session) => session,
        Err(why) => return Err(ChatError::BadProvider { provider, why }),
    };
    let mut plain = json!({"channel": session.as_str(), "provider": provider});
    add_token(&mut plain);
    let wants_worktree = config.is_some();
    if let Some(config) = config {
        plain["config"] = config;
    }
    let Some(directory) = directory else {
        // No directory to ask for, or one that no URI can name: the host chooses.
        live.request("createSession", plain).await?;
        return Ok((session, None));
    };
    let mut params = plain.clone();
    params["workingDirectories"] = json!([directory]);
    match live.request("createSession", params).await {
        Ok(_) => Ok((session, None)),
        Err(error) if error.code() == Some(code::PERMISSION_DENIED) && !wants_worktree => {
            let notice =
                format!("the agent works in the host's default directory, not here: {error}");
            live.request("createSession", plain).await?;
            Ok((session, Some(notice)))
        }
        Err(error) => Err(error.into()),
    }
}

/// An error if the agent has no such setting: the host would leave it out without a word.
async fn check_worktrees(live: &Live, provider: &str, config: &Value) -> Result<(), ChatError> {
    let root = ChannelUri::root();
    let params = json!({"channel": root.as_str(), "provider": provider, "config": config});
    let resolved = live.request("resolveSessionConfig", params).await?;
    if resolved["schema"]["properties"]["isolation"].is_object() {
        Ok(())
    } else {
        Err(ChatError::NoWorktrees(provider.to_owned()))
    }
}

fn choose_provider(live: &Live, agent: Option<&str>) -> Result<String, ChatError> {
    let root = live.root();
    let agents = root.as_ref().map_or(&[][..], |root| root.agents.as_slice());
    let offered: Vec<String> =
        agents.iter().filter_map(|agent| agent["provider"].as_str()).map(str::to_owned).collect();
    match agent {
        Some(agent) if offered.iter().any(|provider| provider == agent) => Ok(agent.to_owned()),
        Some(agent) => Err(ChatError::UnknownAgent { agent: agent.to_owned(), offered }),
        None => offered.into_iter().next().ok_or(ChatError::NoAgent),
    }
}

/// A path as a `file:` URI; none if it cannot be one.
fn file_uri(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    path.is_absolute().then(|| wire::file_uri::uri_of(text))
}

/// The session that a chat belongs to: no state of a chat names it. A session's first chat is named after it, and the
/// summaries of sessions name all their chats; a session that nobody used yet is in no list.
async fn find_session_of(live: &Live, chat: &ChannelUri) -> Result<ChannelUri, ChatError> {
    if let Some(session) = session_named_in(chat) {
        return Ok(session);
    }
    let sessions = live.list_all_sessions().await?;
    match sessions.iter().find(|session| session.has_chat(chat)) {
        Some(session) => Ok(session.uri()?),
        None => Err(ChatError::NoSessionOf(chat.clone())),
    }
}

/// The name of the chat that comes with a session (G-26).
pub fn default_chat_of(session: &str) -> String {
    format!("{DEFAULT_CHAT}{}", URL_SAFE_NO_PAD.encode(session))
}

/// The session that the name of its first chat tells (G-26).
fn session_named_in(chat: &ChannelUri) -> Option<ChannelUri> {
    let name = chat.as_str().strip_prefix(DEFAULT_CHAT)?;
    let session = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
    ChannelUri::parse(&session).ok()
}

/// The chat that messages go to; waits for one while the session is being created.
async fn wait_for_chat(
    live: &Live,
    feed: &mut UpdateFeed,
    session: &ChannelUri,
) -> Result<ChannelUri, ChatError> {
    let look = || {
        let state = live.session(session).ok_or_else(|| ChatError::NotAChat(session.clone()))?;
        if let Some(why) = failure_of(&state) {
            return Err(ChatError::CreationFailed(why));
        }
        let first = || state.chats.first().map(|chat| &chat.resource);
        let chat = state.default_chat.as_ref().or_else(first);
        Ok(chat.map(|chat| ChannelUri::parse(chat)).transpose()?)
    };
    feed.wait_until(live, look).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_chat_tells_its_session() {
        let named = |chat: &str| session_named_in(&ChannelUri::parse(chat).unwrap());
        let session = ChannelUri::parse("native:/1?x=ü").unwrap();
        let chat = format!("ahp-chat://default/{}", URL_SAFE_NO_PAD.encode(session.as_str()));
        assert_eq!(named(&chat), Some(session));
        for other in ["ahp-chat:/worker-1", "ahp-chat://default/!", "ahp-chat://default/YQ"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_is_named_by_a_uri() {
        let uri = |path: &str| file_uri(Path::new(path));
        assert_eq!(uri("/a b/ü").as_deref(), Some("file:///a%20b/%C3%BC"));
        assert_eq!(uri("relative"), None);
    }
}
