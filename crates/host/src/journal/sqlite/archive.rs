//! A session read out of a data directory, whether or not a host serves it.
//!
//! Promises: everything comes from one moment, also beside a running host; memory holds one page of turns at a time.
//! Must not know: what becomes of what is read.

use std::path::Path;
use std::sync::Arc;

use kernel::{Answer, ChannelId, Query, StoredChannel, StoredKind, StoredMessage, TurnPage};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};
use wire::reduce::reduce_chat;
use wire::state::{ChatState, SessionState};
use wire::{ChannelUri, Timestamp, action};

use super::calls::{self, ArchivedCall, ArchivedRequest};
use super::messages::{self, ArchivedLowering};
use super::read::list::UNLISTED;
use super::renders::{self, ArchivedRender};
use super::{SqliteReader, int, read, unread};
use crate::journal::JournalError;

/// Turns and bytes of a page.
const PAGE_TURNS: u32 = 50;
const PAGE_BYTES: u64 = 1 << 20;

/// The journal of a data directory as it was when it was opened.
#[derive(Debug)]
pub struct Archive {
    conn: Connection,
}

/// A session, and those of its chats that were asked for.
#[derive(Debug)]
pub struct ArchivedSession {
    pub uri: ChannelUri,
    pub state: SessionState,
    pub chats: Vec<ArchivedChat>,
    /// When it was made, and when it was last modified, if it was ever listed.
    pub times: Option<(Timestamp, Timestamp)>,
}

/// A chat without its completed turns: see [`Archive::turns`].
#[derive(Debug)]
pub struct ArchivedChat {
    pub state: ChatState,
    id: ChannelId,
}

impl Archive {
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let SqliteReader { conn } = SqliteReader::open(dir)?;
        // The first read fixes the moment; the transaction ends with the connection.
        conn.execute_batch("BEGIN").map_err(unread)?;
        Ok(Self { conn })
    }

    /// The session that a URI names: with all its chats, or with the one chat that was named.
    pub fn session(&self, uri: &ChannelUri) -> Result<Option<ArchivedSession>, JournalError> {
        let Some(found) = self.channel(uri)? else { return Ok(None) };
        let (session, chats) = match (found.kind, found.parent.clone()) {
            (StoredKind::Session, _) => {
                let state = session_of(&found)?;
                let listed = state.chats.iter().map(|chat| &chat.resource);
                let chats = listed.filter_map(|chat| self.chat(chat).transpose());
                (found, chats.collect::<Result<_, _>>()?)
            }
            (StoredKind::Chat, Some(session)) => (*session, vec![chat_of(&found)?]),
            (
                StoredKind::Root
                | StoredKind::Chat
                | StoredKind::Changeset
                | StoredKind::Annotations
                | StoredKind::Terminal,
                _,
            ) => {
                return Ok(None);
            }
        };
        Ok(Some(ArchivedSession {
            state: session_of(&session)?,
            times: self.times_of(session.id)?,
            uri: session.uri,
            chats,
        }))
    }

    fn times_of(&self, session: ChannelId) -> Result<Option<(Timestamp, Timestamp)>, JournalError> {
        let mut statement = self
            .conn
            .prepare_cached(
                "SELECT created, modified FROM summary WHERE session = ?1 AND modified > ?2",
            )
            .map_err(unread)?;
        let found = statement.query_row([int(session.0), UNLISTED], |row| {
            Ok((Timestamp(row.get(0)?), Timestamp(row.get(1)?)))
        });
        found.optional().map_err(unread)
    }

    /// The summaries of all sessions that are listed, the newest first.
    pub fn sessions(&self) -> Result<Vec<Value>, JournalError> {
        let mut statement = self
            .conn
            .prepare_cached(
                "SELECT json, empty FROM summary WHERE modified > ?1 ORDER BY modified DESC, session DESC",
            )
            .map_err(unread)?;
        let rows = statement
            .query_map([UNLISTED], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, bool>(1)?)));
        let mut summaries = Vec::new();
        for row in rows.map_err(unread)? {
            let (json, is_empty) = row.map_err(unread)?;
            let mut summary = json_of(&json, "a summary")?;
            if is_empty {
                summary["_meta"] = json!({"x-empty": true});
            }
            summaries.push(summary);
        }
        Ok(summaries)
    }

    /// What can be said of the sessions that are in no list: nothing was said in them yet (G-28).
    pub fn unlisted_sessions(&self) -> Result<Vec<Value>, JournalError> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT uri, created FROM summary WHERE modified = ?1 ORDER BY created DESC, session DESC")
            .map_err(unread)?;
        let rows = statement
            .query_map([UNLISTED], |row| Ok((row.get::<_, String>(0)?, Timestamp(row.get(1)?))));
        let mut summaries = Vec::new();
        for row in rows.map_err(unread)? {
            let (uri, created) = row.map_err(unread)?;
            let parsed = ChannelUri::parse(&uri).ok();
            let found = parsed.map(|uri| self.channel(&uri)).transpose()?.flatten();
            let state = found.map(|found| session_of(&found)).transpose()?;
            let Some(state) = state else {
                continue; // disposed of, its row is about to go
            };
            summaries.push(json!({
                "resource": uri,
                "provider": state.provider,
                "title": state.title,
                "status": state.status,
                "createdAt": created.to_rfc3339(),
                "modifiedAt": created.to_rfc3339(),
                "workingDirectories": state.working_directories,
                "_meta": {"x-empty": true},
            }));
        }
        Ok(summaries)
    }

    /// Hands over the completed turns of a chat, the oldest first.
    pub fn turns<E: From<JournalError>>(
        &self,
        chat: &ArchivedChat,
        mut take: impl FnMut(Value) -> Result<(), E>,
    ) -> Result<(), E> {
        // Pages are read newest first: note where each ends, then read them once more the other way round.
        let mut ends = vec![u64::MAX];
        loop {
            let end = ends.last().copied().unwrap_or(u64::MAX);
            let page = self.page(chat.id, end)?;
            match page.turns.first() {
                Some(first) if page.older => ends.push(first.n),
                _ => break,
            }
        }
        for end in ends.into_iter().rev() {
            for turn in self.page(chat.id, end)?.turns {
                take(json_of(&turn.json, "a turn")?)?;
            }
        }
        Ok(())
    }

    /// The state of the root channel.
    pub fn root(&self) -> Result<Option<Value>, JournalError> {
        let found = self.channel(&ChannelUri::root())?;
        found.map(|found| json_of(&found.head, "the root")).transpose()
    }

    /// The newest renders of a chat's system prompt, the oldest first.
    pub fn renders(&self, chat: &ArchivedChat) -> Result<Vec<ArchivedRender>, JournalError> {
        renders::of_chat(&self.conn, chat.id.0)
    }

    /// The messages of users in a turn: the rows, with their parts as they are stored.
    pub fn messages(&self, chat: &ArchivedChat, turn_id: &str) -> Result<Vec<Value>, JournalError> {
        let turn_ids = [turn_id.to_owned()];
        let found = messages::of_turns(&self.conn, chat.id, &turn_ids).map_err(unread)?;
        let row = |message: StoredMessage| {
            let parts = message
                .parts
                .iter()
                .map(|(part, _)| json_of(&part.json, "a part"))
                .collect::<Result<Vec<Value>, JournalError>>()?;
            let metadata = json_of(&message.metadata, "a message")?;
            Ok(json!({"id": message.id, "role": "user", "metadata": metadata, "parts": parts}))
        };
        found.into_iter().map(row).collect()
    }

    /// A chat's messages as they were sent to models, the oldest first.
    pub fn lowered(&self, chat: &ArchivedChat) -> Result<Vec<ArchivedLowering>, JournalError> {
        messages::lowered_of(&self.conn, chat.id.0)
    }

    /// The requests to models of a chat that are stored, the oldest first.
    pub fn calls(&self, chat: &ArchivedChat) -> Result<Vec<ArchivedCall>, JournalError> {
        calls::of_chat(&self.conn, chat.id.0)
    }

    /// What was sent in a call.
    pub fn read_request(&self, call: &ArchivedCall) -> Result<ArchivedRequest, JournalError> {
        calls::request(&self.conn, call)
    }

    fn page(&self, chat: ChannelId, before_n: u64) -> Result<TurnPage, JournalError> {
        let query = Query::Turns { chat, before_n, turns_max: PAGE_TURNS, bytes_max: PAGE_BYTES };
        match read::answer(&self.conn, &query)? {
            Answer::Turns(page) => Ok(page),
            _ => Ok(TurnPage::default()),
        }
    }

    fn channel(&self, uri: &ChannelUri) -> Result<Option<StoredChannel>, JournalError> {
        let query = Query::Channel { uri: uri.clone(), turns_max: 1, bytes_max: 0 };
        match read::answer(&self.conn, &query)? {
            Answer::Channel(found) => Ok(found.map(|found| *found)),
            _ => Ok(None),
        }
    }

    fn chat(&self, uri: &str) -> Result<Option<ArchivedChat>, JournalError> {
        let Ok(uri) = ChannelUri::parse(uri) else { return Ok(None) };
        self.channel(&uri)?.as_ref().map(chat_of).transpose()
    }
}

fn session_of(stored: &StoredChannel) -> Result<SessionState, JournalError> {
    SessionState::from_value(json_of(&stored.head, "a session")?).map_err(damaged)
}

fn chat_of(stored: &StoredChannel) -> Result<ArchivedChat, JournalError> {
    let mut state = ChatState::from_value(json_of(&stored.head, "a chat")?).map_err(damaged)?;
    for (_, envelope) in &stored.later {
        if let Some(action) = action::from_envelope(envelope) {
            reduce_chat(&mut state, &action);
        }
    }
    state.turns = Arc::default(); // they have rows of their own
    Ok(ArchivedChat { state, id: stored.id })
}

fn json_of(bytes: &[u8], what: &str) -> Result<Value, JournalError> {
    serde_json::from_slice(bytes)
        .map_err(|error| JournalError::Unreadable(format!("{what} is damaged: {error}")))
}

fn damaged(error: wire::state::StateError) -> JournalError {
    JournalError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kernel::{Batch, BootWork, ChannelRecord, Head, Record, Seq};
    use serde_json::json;
    use wire::state::Turn;

    use super::*;
    use crate::journal::{Journal, Sqlite};

    fn uri(text: &str) -> ChannelUri {
        ChannelUri::parse(text).unwrap()
    }

    fn channel(id: u64, name: &str, parent: Option<u64>) -> Record {
        let state = json!({
            "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
            "resource": "test:/chat", "modifiedAt": "", "chats": [
                {"resource": "test:/chat", "title": "", "status": 1, "modifiedAt": ""},
            ],
        });
        let (kind, head) = match parent {
            None => (
                StoredKind::Session,
                Head::Session(Arc::new(SessionState::from_value(state).unwrap())),
            ),
            Some(_) => {
                (StoredKind::Chat, Head::Chat(Arc::new(ChatState::from_value(state).unwrap())))
            }
        };
        Record::Channel(ChannelRecord {
            id: ChannelId(id),
            uri: uri(name),
            kind,
            parent: parent.map(ChannelId),
            head,
            head_seq: Seq(id),
            boot_work: BootWork::default(),
            private: Bytes::new(),
        })
    }

    fn turn(n: u64) -> Record {
        let json = json!({"id": format!("t{n}"), "state": "complete", "responseParts": []});
        Record::Turn { chat: ChannelId(2), n, turn: Arc::new(Turn::from_value(&json).unwrap()) }
    }

    fn ids(archive: &Archive, chat: &ArchivedChat) -> Vec<String> {
        let mut ids = Vec::new();
        let taken: Result<(), JournalError> = archive.turns(chat, |turn| {
            ids.push(turn["id"].as_str().unwrap().to_owned());
            Ok(())
        });
        taken.unwrap();
        ids
    }

    #[test]
    fn all_turns_come_in_order_and_from_one_moment() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Sqlite::open(dir.path()).unwrap();
        let mut records =
            vec![channel(1, "test:/session", None), channel(2, "test:/chat", Some(1))];
        records.extend((0..120).map(turn));
        let seq = Seq(9);
        journal.append(&Batch { seq, records }).unwrap();

        let archive = Archive::open(dir.path()).unwrap();
        let session = archive.session(&uri("test:/session")).unwrap().unwrap();
        let [chat] = &session.chats[..] else { panic!("{session:?}") };
        // The host goes on; what is being read does not change.
        let records = vec![turn(120)];
        journal.append(&Batch { seq, records }).unwrap();
        let expected: Vec<String> = (0..120).map(|n| format!("t{n}")).collect();
        assert_eq!(ids(&archive, chat), expected);

        let archive = Archive::open(dir.path()).unwrap();
        let by_chat = archive.session(&uri("test:/chat")).unwrap().unwrap();
        assert_eq!(by_chat.uri, session.uri);
        assert_eq!(ids(&archive, &by_chat.chats[0]).len(), 121);
        assert!(archive.session(&uri("test:/none")).unwrap().is_none());
    }
}
