//! The chat that is open: its state, its events, and how another replaces it.
//!
//! Promises: an event says that there is something to look at; the state is always readable.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use wire::state::{ChatState, Outcome, SessionState};
use wire::{Action, ChannelUri};

use crate::{ClientError, ConnectionEvent, Live, SessionIndex, Update, Updates};

use super::creation::CreationProgress;
use super::draft::DraftOwner;
use super::event::{ChatEvent, Undelivered};
use super::feed::UpdateFeed;
use super::model::{LastModel, ModelSelection};
use super::open::{Opened, open};
use super::{ChatError, ChatSelector, OpenOptions};

/// A chat that is open on a connection. Its state stays up to date while [`OpenChat::next`] is called.
#[derive(Debug)]
pub struct OpenChat {
    pub(super) live: Live,
    pub(super) feed: UpdateFeed,
    pub(super) session: ChannelUri,
    pub(super) chat: ChannelUri,
    pub(super) draft: DraftOwner,
    /// Messages that were queued, or sent to steer, from here, by id.
    pub(super) queued: Vec<String>,
    /// Turns that are to be queued if another client's turn comes first.
    pub(super) queue_if_refused: Vec<String>,
    /// The model that was chosen here for messages.
    pub(super) model: Option<ModelSelection>,
    pub(super) last_model: LastModel,
    /// What is known of the host's other sessions.
    pub(super) sessions: SessionIndex,
    notice: Option<String>,
    /// The title of a session that was made here, as the host named it: one that still has it was named by nobody.
    new_title: Option<String>,
    /// The newest progress of the session's creation.
    pub(super) creation: Option<CreationProgress>,
    /// Somebody commented on a file here: the session is not unused.
    pub(super) is_annotated: bool,
}

fn title_of(live: &Live, session: &ChannelUri) -> Option<String> {
    live.session(session).map(|session| session.title.clone())
}

impl OpenChat {
    pub async fn open(
        live: Live,
        updates: Updates,
        selector: &ChatSelector,
        options: &OpenOptions,
    ) -> Result<Self, ChatError> {
        let mut feed = UpdateFeed::new(updates);
        let opened = open(&live, &mut feed, selector, options).await?;
        let mut chat = Self::from_parts(live, feed, opened);
        chat.choose_model();
        Ok(chat)
    }

    fn from_parts(live: Live, feed: UpdateFeed, opened: Opened) -> Self {
        let Opened { session, chat, notice, is_new } = opened;
        let has_draft = live.chat(&chat).is_some_and(|chat| chat.draft.is_some());
        let new_title = is_new.then(|| title_of(&live, &session)).flatten();
        Self {
            live,
            feed,
            session,
            chat,
            draft: DraftOwner::when_opened(has_draft),
            queued: Vec::new(),
            queue_if_refused: Vec::new(),
            model: None,
            last_model: LastModel::default(),
            sessions: SessionIndex::default(),
            notice,
            new_title,
            creation: None,
            is_annotated: false,
        }
    }

    /// Opens another chat in place of this one, which is not watched any more. `draft` is left behind in this one. On an
    /// error this one stays open.
    pub async fn switch_to(
        &mut self,
        selector: &ChatSelector,
        options: &OpenOptions,
        draft: Option<&str>,
    ) -> Result<(), ChatError> {
        let opened = open(&self.live, &mut self.feed, selector, options).await?;
        if let Some(draft) = draft {
            self.save_draft(draft)?;
        }
        if opened.session != self.session {
            self.dispose_if_unused().await;
        }
        for channel in [&self.chat, &self.session] {
            if ![&opened.chat, &opened.session].contains(&channel) {
                self.live.unsubscribe(channel).await;
            }
        }
        let has_draft = self.live.chat(&opened.chat).is_some_and(|chat| chat.draft.is_some());
        self.draft = DraftOwner::when_opened(has_draft);
        self.new_title = opened.is_new.then(|| title_of(&self.live, &opened.session)).flatten();
        self.creation = None;
        self.is_annotated = false;
        self.session = opened.session;
        self.chat = opened.chat;
        self.notice = opened.notice;
        self.queued.clear();
        self.queue_if_refused.clear();
        self.choose_model();
        Ok(())
    }

    fn choose_model(&mut self) {
        if let Some(gone) = self.resume_model() {
            self.notice = Some(match self.notice.take() {
                Some(notice) => format!("{notice}; {gone}"),
                None => gone,
            });
        }
    }

    pub fn session(&self) -> &ChannelUri {
        &self.session
    }

    pub fn chat(&self) -> &ChannelUri {
        &self.chat
    }

    /// Something worth knowing about how the chat was opened.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The connection, for what is not about this chat.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Sends what is unsent and ends the connection. A session that was made here and never used goes.
    pub async fn close(self) {
        self.dispose_if_unused().await;
        self.live.close().await;
    }

    /// Ends the session if it was made here and nothing ever happened in it: no list shows it, so nobody else can be in it
    /// who was not told its name.
    async fn dispose_if_unused(&self) {
        if self.is_unused() {
            // Without a connection, or if the host does not want to, it goes with the host's own sweep (G-28).
            let _ = self.live.dispose_session(&self.session).await;
        }
    }

    fn is_unused(&self) -> bool {
        let Some(new_title) = &self.new_title else {
            return false; // it was there before, or is not known here
        };
        let (Some(session), Some(chat)) = (self.session_state(), self.ahead()) else {
            return false;
        };
        let draft = chat.draft.as_ref();
        let is_draft_empty = draft.is_none_or(|draft| {
            draft["text"].as_str().unwrap_or("").is_empty()
                && draft["attachments"].as_array().is_none_or(Vec::is_empty)
        });
        !self.is_annotated
            && session.title == *new_title
            && session.chats.len() <= 1
            && session.active_clients.is_empty()
            && chat.turns.is_empty()
            && chat.turns_next_cursor.is_none()
            && chat.active_turn.is_none()
            && chat.queued_messages.is_empty()
            && is_draft_empty
    }

    /// The chat as the host confirmed it.
    pub fn confirmed(&self) -> Option<Arc<ChatState>> {
        self.live.read(|replica| replica.confirmed_chat(self.chat.as_str()).cloned())
    }

    /// The chat with what was done here and is not confirmed yet.
    pub fn ahead(&self) -> Option<Arc<ChatState>> {
        self.live.chat(&self.chat)
    }

    /// [`Self::confirmed`] and [`Self::ahead`] of one moment: between two looks a turn may end.
    pub fn confirmed_and_ahead(&self) -> (Option<Arc<ChatState>>, Option<Arc<ChatState>>) {
        let chat = self.chat.as_str();
        self.live.read(|replica| {
            let confirmed = replica.confirmed_chat(chat).cloned();
            (confirmed, replica.chat(chat).cloned())
        })
    }

    pub fn session_state(&self) -> Option<Arc<SessionState>> {
        self.live.session(&self.session)
    }

    /// Where the agent of this chat works first, if that is a directory.
    pub fn directory(&self) -> Option<PathBuf> {
        self.directories().into_iter().next()
    }

    /// Where the agent of this chat works, as far as those are directories.
    pub fn directories(&self) -> Vec<PathBuf> {
        directories_of(self.ahead().as_deref(), self.session_state().as_deref())
    }

    /// Whether a turn runs, as far as is known here.
    pub fn is_working(&self) -> bool {
        self.ahead().is_some_and(|chat| chat.active_turn.is_some())
    }

    /// Whether the host has not answered something that was done here. Of what is done in other chats only refusals are told.
    pub fn has_pending_actions(&self) -> bool {
        let ours = [self.chat.as_str(), self.session.as_str()];
        self.live.read(|replica| {
            let mut pending = replica.pending();
            pending.any(|pending| ours.contains(&pending.channel.as_str()))
        })
    }

    /// After a turn that was cancelled or failed the queue waits for a user (G-08).
    pub fn is_queue_paused(&self) -> bool {
        let chat = self.confirmed();
        let last = chat.as_ref().and_then(|chat| chat.turns.last());
        last.is_some_and(|turn| turn.outcome != Outcome::Complete)
    }

    /// Waits for the next event; an error once the chat is gone or the connection has ended for good. May be dropped and
    /// called again: nothing is lost.
    pub async fn next(&mut self) -> Result<ChatEvent, ChatError> {
        match self.feed.next().await {
            Some(update) => self.take_update(update),
            None => Err(self.live.closed_error().into()),
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Result<Option<ChatEvent>, ChatError> {
        let update = self.feed.try_next();
        update.map(|update| self.take_update(update)).transpose()
    }

    fn take_update(&mut self, update: Update) -> Result<ChatEvent, ChatError> {
        Ok(match update {
            Update::Refused { action, reason, .. } => {
                if self.queue_refused(&action)? {
                    ChatEvent::Changed
                } else {
                    ChatEvent::Refused { what: Undelivered::of(&action), reason }
                }
            }
            Update::NotResent { action, .. } => {
                ChatEvent::NotResent { what: Undelivered::of(&action) }
            }
            Update::Gone { channel } if channel == self.chat.as_str() => {
                return Err(ChatError::Gone);
            }
            Update::Connection(event) => match event {
                ConnectionEvent::Lost { why } => ChatEvent::ConnectionLost { why },
                ConnectionEvent::Retrying { why: Some(why), .. } => {
                    ChatEvent::ReconnectFailed { why }
                }
                ConnectionEvent::Retrying { why: None, .. } => ChatEvent::Changed,
                ConnectionEvent::Restored { .. } => ChatEvent::Reconnected,
                ConnectionEvent::Closed { why } => return Err(why.into()),
            },
            Update::Notification(notification) => {
                let progress = CreationProgress::read(&notification, self.session.as_str());
                self.creation = progress.or(self.creation.take());
                self.sessions.receive(&notification);
                ChatEvent::Changed
            }
            Update::Changed { .. } | Update::Reset { .. } | Update::Gone { .. } => {
                ChatEvent::Changed
            }
        })
    }

    /// A message that was refused because another client's turn came first waits for that instead. `false` if that was
    /// not the reason.
    fn queue_refused(&mut self, action: &Action) -> Result<bool, ClientError> {
        let turn_id = action.text("turnId");
        let sent = &mut self.queue_if_refused;
        let Some(index) = sent.iter().position(|sent| Some(sent.as_str()) == turn_id) else {
            return Ok(false);
        };
        sent.remove(index);
        let is_busy = self.confirmed().is_some_and(|chat| chat.active_turn.is_some());
        match action.get("message") {
            Some(message) if is_busy && action.name() == "chat/turnStarted" => {
                self.queue_message(message)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn dispatch(&self, action: Value) -> Result<i64, ClientError> {
        self.live.dispatch(&self.chat, action)
    }
}

/// Those of the chat itself, or those of its session.
fn directories_of(chat: Option<&ChatState>, session: Option<&SessionState>) -> Vec<PathBuf> {
    let own = chat.and_then(|chat| chat.working_directories.as_ref());
    let of_session = session.and_then(|session| session.working_directories.as_ref());
    let uris = own.or(of_session).into_iter().flatten();
    let paths = uris.filter_map(|uri| wire::file_uri::path_of(uri));
    paths.map(|path| OsString::from_vec(path).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directory_of_a_chat_is_known() {
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        assert!(directories_of(Some(&chat), None).is_empty());
        let uris = ["file:///w/a%20b", "https://example.org/", "file:///w/c"];
        chat.working_directories = Some(uris.map(str::to_owned).to_vec());
        let expected = ["/w/a b", "/w/c"].map(PathBuf::from);
        assert_eq!(directories_of(Some(&chat), None), expected);
    }
}
