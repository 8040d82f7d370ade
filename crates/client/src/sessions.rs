//! The list of a host's sessions.
//!
//! Promises: a summary preserves unknown fields.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wire::ChannelUri;
use wire::ext::import_session::{self, ImportSessionParams};
use wire::state::status;
use wire::uri::UriError;

use crate::{ClientError, ConnectionEvent, Live, Update, Updates};

/// Where the worktrees of a repository lie, unless the host's settings say otherwise (G-54).
const WORKTREES: &str = ".greenroom/worktrees";

/// Says in the `_meta` of a listed session that it is empty.
pub const EMPTY: &str = "x-empty";

/// What a search for the newest session came to.
#[derive(Debug, Clone, PartialEq)]
pub enum LatestSession {
    Found(SessionSummary),
    /// None in that directory; the newest of all others.
    Elsewhere(SessionSummary),
    /// There is none at all.
    None,
}

/// What a host's list says about a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary(Value);

impl SessionSummary {
    pub fn new(summary: Value) -> Self {
        Self(summary)
    }

    /// The summary as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The session's channel, as text.
    pub fn resource(&self) -> &str {
        self.text("resource")
    }

    pub fn uri(&self) -> Result<ChannelUri, UriError> {
        ChannelUri::parse(self.resource())
    }

    pub fn title(&self) -> &str {
        self.text("title")
    }

    /// The bits of [`wire::state::status`]; none of them if it is missing.
    pub fn status(&self) -> u32 {
        let bits = self.0["status"].as_u64();
        bits.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(0)
    }

    /// When it was modified last, as RFC 3339.
    pub fn modified_at(&self) -> &str {
        self.text("modifiedAt")
    }

    /// The directory its agents work in, if it has one on some machine's disk.
    pub fn directory(&self) -> Option<PathBuf> {
        let directories = self.0["workingDirectories"].as_array()?;
        let path = wire::file_uri::path_of(directories.first()?.as_str()?)?;
        Some(PathBuf::from(OsString::from_vec(path)))
    }

    /// How many directories its agents work in beside that one.
    pub fn further_directories(&self) -> usize {
        self.0["workingDirectories"].as_array().map_or(0, |all| all.len().saturating_sub(1))
    }

    pub fn is_archived(&self) -> bool {
        self.status() & status::IS_ARCHIVED != 0
    }

    /// Whether the host says that nothing was ever said in it and nothing waits in it: what a client opened, typed into, cleared
    /// and left.
    pub fn is_empty(&self) -> bool {
        self.0["_meta"][EMPTY] == true
    }

    /// Whether it works in a directory, by whatever name: links are followed where they lead somewhere. A session that has a worktree of its
    /// own works in the repository that it is of.
    pub fn works_in(&self, directory: &Path) -> bool {
        let Some(own) = self.directory() else { return false };
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let is_in = |own: &Path, directory: &Path| {
            let worktree = own.strip_prefix(directory.join(WORKTREES));
            own == directory || worktree.is_ok_and(|name| name.components().count() == 1)
        };
        let real_is_in = || Some(is_in(&real(&own)?, &real(directory)?));
        is_in(&own, directory) || real_is_in().unwrap_or(false)
    }

    /// Whether the list names this chat as one of the session.
    pub fn has_chat(&self, chat: &ChannelUri) -> bool {
        let mut chats = self.0["chats"].as_array().into_iter().flatten();
        chats.any(|entry| entry["resource"] == chat.as_str())
            || self.0["defaultChat"] == chat.as_str()
    }

    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or("")
    }
}

/// Pages of a list of sessions; no host has so many.
const PAGES_MAX: usize = 10_000;

/// Whether more pages of the list are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pages {
    More,
    Enough,
}

impl Live {
    /// The sessions of the host, the newest first, without empty ones: the first page, which is more than a person reads.
    pub async fn list_sessions(&self) -> Result<Vec<SessionSummary>, ClientError> {
        let (mut sessions, _) = self.list_page(json!({})).await?;
        sessions.retain(|session| !session.is_empty());
        Ok(sessions)
    }

    /// The session that was used last, if there is one.
    pub async fn latest_session(&self) -> Result<Option<SessionSummary>, ClientError> {
        let (sessions, _) = self.list_page(json!({"limit": 1})).await?;
        Ok(sessions.into_iter().next())
    }

    /// The session that was used last in a directory; without one, in any. Empty and archived ones do not count.
    pub async fn latest_session_in(
        &self,
        directory: Option<&Path>,
    ) -> Result<LatestSession, ClientError> {
        let mut latest = LatestSession::None;
        self.for_each_page(|page| {
            for session in page {
                if session.is_empty() || session.is_archived() {
                    continue;
                }
                if directory.is_none_or(|directory| session.works_in(directory)) {
                    latest = LatestSession::Found(session);
                    return Pages::Enough;
                }
                if latest == LatestSession::None {
                    latest = LatestSession::Elsewhere(session);
                }
            }
            Pages::More
        })
        .await?;
        Ok(latest)
    }

    /// All sessions of the host, the newest first, page by page.
    pub async fn list_all_sessions(&self) -> Result<Vec<SessionSummary>, ClientError> {
        let mut sessions = Vec::new();
        self.for_each_page(|page| {
            sessions.extend(page);
            Pages::More
        })
        .await?;
        Ok(sessions)
    }

    async fn for_each_page(
        &self,
        mut take: impl FnMut(Vec<SessionSummary>) -> Pages,
    ) -> Result<(), ClientError> {
        let mut cursor: Option<String> = None;
        // A host that repeats itself would be asked forever.
        for _ in 0..PAGES_MAX {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let (page, next) = self.list_page(params).await?;
            if take(page) == Pages::Enough || next.is_none() || next == cursor {
                return Ok(());
            }
            cursor = next;
        }
        Err(ClientError::Unreadable(format!("a session list of more than {PAGES_MAX} pages")))
    }

    /// Gives a session another title.
    pub async fn rename_session(
        &self,
        updates: &mut Updates,
        session: &ChannelUri,
        title: &str,
    ) -> Result<(), ClientError> {
        let action = json!({"type": "session/titleChanged", "title": title});
        self.change_session(updates, session, action).await
    }

    /// Puts a session away, or takes it out again.
    pub async fn archive_session(
        &self,
        updates: &mut Updates,
        session: &ChannelUri,
        is_archived: bool,
    ) -> Result<(), ClientError> {
        let action = json!({"type": "session/isArchivedChanged", "isArchived": is_archived});
        self.change_session(updates, session, action).await
    }

    /// Dispatches an action on a session that need not be watched before, and waits until the host took or refused it.
    async fn change_session(
        &self,
        updates: &mut Updates,
        session: &ChannelUri,
        action: Value,
    ) -> Result<(), ClientError> {
        self.subscribe(session).await?;
        let sent = self.dispatch(session, action)?;
        while let Some(update) = updates.next().await {
            match update {
                Update::Changed { envelope, .. } if envelope.is_from(&self.client_id(), sent) => {
                    self.unsubscribe(session).await;
                    return Ok(());
                }
                Update::Refused { client_seq, reason, .. } if client_seq == sent => {
                    return Err(ClientError::ActionRefused(reason));
                }
                Update::Connection(
                    ConnectionEvent::Lost { why } | ConnectionEvent::Closed { why },
                ) => {
                    return Err(why);
                }
                // Of others, or of the way the connection was made.
                _ => {}
            }
        }
        Err(self.closed_error())
    }

    /// Has the host make a session out of one that was exported, whole or not at all. Returns its URI.
    pub async fn import_session(
        &self,
        params: &ImportSessionParams,
    ) -> Result<String, ClientError> {
        let params = json!({"session": params.session, "turns": params.turns});
        let answer = self.request(import_session::METHOD, params).await?;
        match answer["session"].as_str() {
            Some(session) => Ok(session.to_owned()),
            None => Err(ClientError::Unreadable("an import without `session`".to_owned())),
        }
    }

    /// Ends a session for everyone. What its user should know of what stays of it, if anything does.
    pub async fn dispose_session(
        &self,
        session: &ChannelUri,
    ) -> Result<Option<String>, ClientError> {
        let params = json!({"channel": session.as_str()});
        let answer = self.request("disposeSession", params).await?;
        let message = answer["_meta"]["greenroom.message"].as_str();
        Ok(message.map(str::to_owned))
    }

    /// A page of the list, and where the next one begins.
    async fn list_page(
        &self,
        mut params: Value,
    ) -> Result<(Vec<SessionSummary>, Option<String>), ClientError> {
        params["channel"] = json!(ChannelUri::root().as_str());
        let mut page = self.request("listSessions", params).await?;
        let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
            return Err(ClientError::Unreadable("a session list without `items`".to_owned()));
        };
        let next = page["nextCursor"].as_str().map(str::to_owned);
        Ok((items.into_iter().map(SessionSummary).collect(), next))
    }
}
