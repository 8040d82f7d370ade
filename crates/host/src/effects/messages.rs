//! Reads users' messages from their rows: typed parts, and their references as they were first resolved (C-021, C-081).
//!
//! Promises: a reference is resolved once; whatever becomes of the file, later turns are shown the same.
//! Must not know: models.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::{AgentError, UserMessage};
use compositor::chat_reference::ChatReference;
use compositor::resolve::{InlineLimits, Resolved, Sources, resolve};
use compositor::{Part, version};
use kernel::{Answer, Batch, ChannelId, FrozenRecord, Query, Record, Seq, StoredMessage};
use serde_json::Value;
use wire::Timestamp;

use super::resources::ResourceReader;
use super::sources::HostSources;
use super::transcript;
use crate::blobs::Blobs;
use crate::frozen::{self, FrozenReference};
use crate::journal::JournalHandle;

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
    ) -> Result<BTreeMap<String, Vec<Arc<UserMessage>>>, AgentError> {
        let query = Query::Messages {
            chat: self.chat,
            turn_ids,
        };
        let stored = self.read(query).await?;
        let turns: Vec<String> = stored
            .iter()
            .map(|message| message.turn_id.clone().unwrap_or_default())
            .collect();
        let mut by_turn: BTreeMap<String, Vec<Arc<UserMessage>>> = BTreeMap::new();
        for (turn, message) in turns.into_iter().zip(self.restore(stored).await) {
            by_turn.entry(turn).or_default().push(message);
        }
        Ok(by_turn)
    }

    /// One message; none if it cannot be read, and its text must do.
    pub(crate) async fn read_one(&self, id: String) -> Option<Arc<UserMessage>> {
        match self.read(Query::Message { id }).await {
            Ok(stored) => self.restore(stored).await.pop(),
            Err(error) => {
                tracing::warn!(%error, "a steering message cannot be read; only its text is used");
                None
            }
        }
    }

    async fn read(&self, query: Query) -> Result<Vec<StoredMessage>, AgentError> {
        match self.journal.read(query).await {
            Ok(Answer::Messages(messages)) => Ok(messages),
            Ok(_) => Err(unreadable("the journal answered something else")),
            Err(error) => Err(unreadable(&error.to_string())),
        }
    }

    /// Rows as typed parts. References that were never resolved are resolved now, and what they are is recorded.
    async fn restore(&self, stored: Vec<StoredMessage>) -> Vec<Arc<UserMessage>> {
        if stored.is_empty() {
            return Vec::new();
        }
        let mut transcripts = self.read_transcripts(&stored).await;
        let mut unreadable = BTreeMap::new();
        if let Some(resources) = &self.resources {
            for read in resources.read_all(&stored).await {
                let outcomes = match read.is_read {
                    true => &mut transcripts,
                    false => &mut unreadable,
                };
                outcomes.insert(read.part_id, read.resolved);
            }
        }
        let (sources, blobs) = (Arc::clone(&self.sources), Arc::clone(&self.blobs));
        let now = self.now;
        let work = tokio::task::spawn_blocking(move || {
            let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
            let mut resolver = ReferenceResolver {
                sources: &mut *sources,
                blobs: &*blobs,
                read_before: transcripts,
                unreadable,
                now,
                records: Vec::new(),
            };
            let messages = stored.into_iter().map(|message| resolver.restore(message));
            let messages: Vec<Arc<UserMessage>> = messages.map(Arc::new).collect();
            (messages, resolver.records)
        });
        let (messages, records) = match work.await {
            Ok(done) => done,
            // A defect of ours: the turn ends in it, rather than with a message that nobody sent.
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        };
        if !records.is_empty() {
            let batch = Batch {
                seq: Seq(0),
                records: records.into_iter().map(Record::Frozen).collect(),
            };
            if let Err(error) = self.journal.append(batch).await {
                tracing::warn!(%error, "resolved references are not recorded; the next turn resolves them again");
            }
        }
        messages
    }
}

impl TurnMessages {
    /// What was said in chats that messages refer to and that were not read before, by part.
    async fn read_transcripts(&self, stored: &[StoredMessage]) -> BTreeMap<String, Resolved> {
        let mut transcripts = BTreeMap::new();
        let parts = stored.iter().flat_map(|message| &message.parts);
        for (row, _) in parts.filter(|(row, frozen)| row.kind == CHAT_KIND && frozen.is_none()) {
            let part = serde_json::from_slice(&row.json).ok();
            let part = part.and_then(|value| Part::from_value(value).ok());
            let Some(reference) = part.as_ref().and_then(ChatReference::of) else {
                continue; // another attachment that nobody knows
            };
            match transcript::read(&self.journal, &reference).await {
                Ok(transcript) => {
                    transcripts.insert(row.id.clone(), transcript);
                }
                Err(error) => {
                    tracing::warn!(%error, "a chat that a message refers to cannot be read; the next turn reads it again");
                }
            }
        }
        transcripts
    }
}

/// Turns rows into messages, and resolves references that were never resolved.
struct ReferenceResolver<'a> {
    sources: &'a mut dyn Sources,
    blobs: &'a dyn Blobs,
    /// Chats and resources that were read for this, by part.
    read_before: BTreeMap<String, Resolved>,
    /// Those that could not be: they are tried again.
    unreadable: BTreeMap<String, Resolved>,
    now: Timestamp,
    records: Vec<FrozenRecord>,
}

impl ReferenceResolver<'_> {
    fn restore(&mut self, stored: StoredMessage) -> UserMessage {
        let metadata: Value = serde_json::from_slice(&stored.metadata).unwrap_or_default();
        let schema_version = metadata["schema_version"].as_i64().unwrap_or(1);
        let (rows, recorded): (Vec<_>, Vec<_>) = stored.parts.into_iter().unzip();
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let values = rows
            .iter()
            .map(|row| serde_json::from_slice(&row.json).unwrap_or_default());
        let parts = version::read(values.collect(), schema_version);
        let mut resolved = BTreeMap::new();
        for (index, part) in parts.iter().enumerate() {
            let before = recorded.get(index);
            let before = before.and_then(|json| frozen::load(json.as_deref()?, self.blobs));
            let reference = before.or_else(|| self.resolve(ids.get(index)?, part));
            if let Some(reference) = reference {
                resolved.insert(index, reference);
            }
        }
        UserMessage { parts, resolved }
    }

    fn resolve(&mut self, part_id: &str, part: &Part) -> Option<Resolved> {
        if let Some(unreadable) = self.unreadable.remove(part_id) {
            return Some(unreadable);
        }
        let resolved = match self.read_before.remove(part_id) {
            Some(read) => read,
            None => resolve(part, self.sources, &InlineLimits::default())?,
        };
        match frozen::store(&resolved, self.blobs, self.now) {
            Ok(FrozenReference { json, digest }) => self.records.push(FrozenRecord {
                part_id: part_id.to_owned(),
                json,
                digest,
            }),
            Err(error) => {
                tracing::warn!(%error, "the body of a resolved reference is not stored; the next turn resolves it again");
            }
        }
        Some(resolved)
    }
}

fn unreadable(why: &str) -> AgentError {
    AgentError {
        error_type: "historyUnreadable".to_owned(),
        message: format!("what was said cannot be read: {why}; resume the turn to try again"),
        resumable: true,
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
