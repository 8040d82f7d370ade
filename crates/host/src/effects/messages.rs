//! Users' messages for agents: typed parts, as they were just composed or from their rows, and their references as they were first
//! resolved (C-021, C-081).
//!
//! Promises: a reference is resolved once; whatever becomes of the file, later turns are shown the same. A row that is damaged is an
//! error, never another message.
//! Must not know: models.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::{AgentError, UserMessage};
use compositor::chat_reference::ChatReference;
use compositor::resolve::{InlineLimits, Resolved, Sources, resolve};
use compositor::{Part, version};
use kernel::{
    Answer, Batch, ChannelId, ComposedMessage, FrozenRecord, MessagePart, Query, Record, Seq,
    StoredMessage,
};
use parking_lot::Mutex;
use serde_json::Value;
use wire::Timestamp;

use super::resources::ResourceReader;
use super::sources::HostSources;
use super::transcript;
use crate::blobs::Blobs;
use crate::frozen::{self, FrozenError, FrozenReference};
use crate::journal::JournalHandle;
use crate::sorted_map::SortedMap;
use crate::task;

/// Attachments without a part type of their own, chats among them.
const CHAT_KIND: &str = "ahp-attachment";

/// Reads messages for the agents of one turn.
pub(crate) struct TurnMessages {
    pub journal: JournalHandle,
    pub blobs: Arc<dyn Blobs>,
    pub sources: Arc<Mutex<HostSources>>,
    pub chat: ChannelId,
    /// Who reads what is no file.
    pub resources: Option<Arc<ResourceReader>>,
    pub now: Timestamp,
}

impl TurnMessages {
    /// The messages of some turns, by turn.
    pub(crate) async fn read_turns(
        &self,
        turn_ids: Vec<String>,
    ) -> Result<SortedMap<String, Vec<Arc<UserMessage>>>, AgentError> {
        let query = Query::Messages { chat: self.chat, turn_ids };
        let mut turns = Vec::new();
        let mut read = Vec::new();
        for message in self.read(query).await? {
            turns.push(message.turn_id.clone().unwrap_or_default());
            read.push(parts_of(message)?);
        }
        let mut by_turn = SortedMap::default();
        for (turn, message) in turns.into_iter().zip(self.resolve(read).await?) {
            by_turn.get_or_insert_with(turn, Vec::new).push(message);
        }
        Ok(by_turn)
    }

    /// A message that was just composed: its rows hold the same, and are not read.
    pub(crate) async fn use_composed(
        &self,
        composed: ComposedMessage,
    ) -> Result<Arc<UserMessage>, AgentError> {
        let mut messages = self.resolve(vec![composed.parts]).await?;
        let nothing = || Arc::new(UserMessage::text(""));
        Ok(messages.pop().unwrap_or_else(nothing))
    }

    /// One message; none if it cannot be read, and its text must do.
    pub(crate) async fn read_one(&self, id: String) -> Option<Arc<UserMessage>> {
        let read = async {
            let stored = self.read(Query::Message { id }).await?;
            let parts: Result<Vec<_>, _> = stored.into_iter().map(parts_of).collect();
            self.resolve(parts?).await
        };
        match read.await {
            Ok(mut messages) => messages.pop(),
            Err(error) => {
                let error = error.message;
                tracing::warn!(%error, "a steering message cannot be read; only its text is used");
                None
            }
        }
    }

    async fn read(&self, query: Query) -> Result<Vec<StoredMessage>, AgentError> {
        match self.journal.read(query).await {
            Ok(Answer::Messages(messages)) => Ok(messages),
            Ok(_) => Err(unreadable_history("the journal answered something else")),
            Err(error) => Err(unreadable_history(&error.to_string())),
        }
    }

    /// Messages with their references resolved. What those are that were never resolved is recorded.
    async fn resolve(
        &self,
        read: Vec<Vec<MessagePart>>,
    ) -> Result<Vec<Arc<UserMessage>>, AgentError> {
        if read.is_empty() {
            return Ok(Vec::new());
        }
        let unresolved = || read.iter().flatten().filter(|part| part.frozen.is_none());
        let mut transcripts = self.read_transcripts(unresolved()).await;
        let mut unreadable = SortedMap::default();
        if let Some(resources) = &self.resources {
            for read in resources.read_all(unresolved()).await {
                let outcomes = if read.is_read { &mut transcripts } else { &mut unreadable };
                outcomes.insert(read.part_id, read.resolved);
            }
        }
        let (sources, blobs) = (Arc::clone(&self.sources), Arc::clone(&self.blobs));
        let now = self.now;
        let work = task::spawn_blocking(move || {
            let mut sources = sources.lock();
            let mut resolver = ReferenceResolver {
                sources: &mut *sources,
                blobs: &*blobs,
                read_before: transcripts,
                unreadable,
                now,
                records: Vec::new(),
            };
            let messages: Vec<Arc<UserMessage>> = read
                .into_iter()
                .map(|parts| resolver.resolve_parts(parts).map(Arc::new))
                .collect::<Result<_, _>>()?;
            Ok((messages, resolver.records))
        });
        let (messages, records) = match work.await {
            Ok(done) => {
                done.map_err(|error: FrozenError| unreadable_history(&error.to_string()))?
            }
            // A defect of ours: the turn ends in it, rather than with a message that nobody sent.
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        };
        if !records.is_empty() {
            let batch =
                Batch { seq: Seq(0), records: records.into_iter().map(Record::Frozen).collect() };
            if let Err(error) = self.journal.append(batch).await {
                tracing::warn!(%error, "resolved references are not recorded; the next turn resolves them again");
            }
        }
        Ok(messages)
    }
}

impl TurnMessages {
    /// What was said in chats that messages refer to and that were not read before, by part.
    async fn read_transcripts(
        &self,
        unresolved: impl Iterator<Item = &MessagePart>,
    ) -> SortedMap<String, Resolved> {
        let mut transcripts = SortedMap::default();
        for MessagePart { id, part, .. } in unresolved.filter(|it| it.part.kind() == CHAT_KIND) {
            let Some(reference) = ChatReference::of(part) else {
                continue; // another attachment that nobody knows
            };
            match transcript::read(&self.journal, &reference).await {
                Ok(transcript) => {
                    transcripts.insert(id.clone(), transcript);
                }
                Err(error) => {
                    tracing::warn!(%error, "a chat that a message refers to cannot be read; the next turn reads it again");
                }
            }
        }
        transcripts
    }
}

/// Resolves the references of messages that were never resolved.
struct ReferenceResolver<'a> {
    sources: &'a mut dyn Sources,
    blobs: &'a dyn Blobs,
    /// Chats and resources that were read for this, by part.
    read_before: SortedMap<String, Resolved>,
    /// Those that could not be: they are tried again.
    unreadable: SortedMap<String, Resolved>,
    now: Timestamp,
    records: Vec<FrozenRecord>,
}

impl ReferenceResolver<'_> {
    fn resolve_parts(&mut self, read: Vec<MessagePart>) -> Result<UserMessage, FrozenError> {
        let mut parts = Vec::with_capacity(read.len());
        let mut resolved = BTreeMap::new();
        for (index, MessagePart { id, part, frozen }) in read.into_iter().enumerate() {
            let before = match frozen {
                Some(json) => frozen::load(&json, self.blobs)?,
                None => None,
            };
            if let Some(reference) = before.or_else(|| self.resolve(&id, &part)) {
                resolved.insert(index, reference);
            }
            parts.push(part);
        }
        Ok(UserMessage { parts, resolved })
    }

    fn resolve(&mut self, part_id: &str, part: &Part) -> Option<Resolved> {
        if let Some(unreadable) = self.unreadable.remove(part_id) {
            return Some(unreadable);
        }
        let resolved = match self.read_before.remove(part_id) {
            Some(read) => read,
            None => resolve(part, self.sources, &InlineLimits::default())?,
        };
        match frozen::store(part, &resolved, self.blobs, self.now) {
            Ok(FrozenReference { json, digest }) => {
                self.records.push(FrozenRecord { part_id: part_id.to_owned(), json, digest })
            }
            Err(error) => {
                tracing::warn!(%error, "the body of a resolved reference is not stored; the next turn resolves it again");
            }
        }
        Some(resolved)
    }
}

/// The typed parts of a message from its rows. Rows of a newer version are read as far as they can be; what is no JSON is damaged.
fn parts_of(stored: StoredMessage) -> Result<Vec<MessagePart>, AgentError> {
    let damaged = |error: serde_json::Error| {
        let why = format!("the row of the message {} is damaged: {error}", stored.id);
        unreadable_history(&why)
    };
    let metadata: Value = serde_json::from_slice(&stored.metadata).map_err(damaged)?;
    let schema_version = metadata["schema_version"].as_i64().unwrap_or(1);
    let mut values = Vec::with_capacity(stored.parts.len());
    for (row, _) in &stored.parts {
        values.push(serde_json::from_slice(&row.json).map_err(damaged)?);
    }
    let parts = version::read(values, schema_version);
    let rows = stored.parts.into_iter().zip(parts);
    let parts = rows.map(|((row, frozen), part)| MessagePart { id: row.id, part, frozen });
    Ok(parts.collect())
}

fn unreadable_history(why: &str) -> AgentError {
    AgentError {
        error_type: "historyUnreadable".to_owned(),
        message: format!("what was said cannot be read: {why}; resume the turn to try again"),
        resumable: true,
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
