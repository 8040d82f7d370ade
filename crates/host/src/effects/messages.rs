//! What users said, from the rows it was kept in: typed parts, their references as they were first seen (C-021, C-081).
//!
//! Promises: a reference is followed once; whatever became of the file, later turns are shown the same.
//! Must not know: models.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agents::{AgentError, UserMessage};
use bytes::Bytes;
use compositor::resolve::{InlineLimits, Resolved, Sources, StoredResolution, resolve};
use compositor::{Part, version};
use kernel::{Answer, Batch, ChannelId, FrozenRecord, Query, Record, Seq, StoredMessage};
use serde_json::{Value, json};
use wire::{Digest, Object, Timestamp, rpc};

use super::outside::Outside;
use crate::blobs::{Blobs, Found};
use crate::journal::JournalThread;

/// The largest body that was ever frozen.
const FROZEN_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// Reads messages for the agents of one turn.
pub(crate) struct Messages {
    pub journal: JournalThread,
    pub blobs: Arc<dyn Blobs>,
    pub outside: Arc<Mutex<Outside>>,
    pub chat: ChannelId,
    pub now: Timestamp,
}

impl Messages {
    /// What was said in some turns, by turn.
    pub async fn of_turns(
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
        let mut said: BTreeMap<String, Vec<Arc<UserMessage>>> = BTreeMap::new();
        for (turn, message) in turns.into_iter().zip(self.rehydrate(stored).await) {
            said.entry(turn).or_default().push(message);
        }
        Ok(said)
    }

    /// One message.
    pub async fn one(&self, id: String) -> Option<Arc<UserMessage>> {
        match self.read(Query::Message { id }).await {
            Ok(stored) => self.rehydrate(stored).await.pop(),
            Err(error) => {
                tracing::warn!(%error, "a message in between is taken by its text");
                None
            }
        }
    }

    async fn read(&self, query: Query) -> Result<Vec<StoredMessage>, AgentError> {
        match self.journal.read(query).await {
            Ok(Answer::Messages(messages)) => Ok(messages),
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(AgentError {
                error_type: "historyUnreadable".to_owned(),
                message: format!(
                    "what was said cannot be read: {error}; resume the turn to try again"
                ),
                resumable: true,
            }),
        }
    }

    /// Rows as typed parts. References that were never followed are followed now, and that is kept.
    async fn rehydrate(&self, stored: Vec<StoredMessage>) -> Vec<Arc<UserMessage>> {
        if stored.is_empty() {
            return Vec::new();
        }
        let (outside, blobs) = (Arc::clone(&self.outside), Arc::clone(&self.blobs));
        let (chat, now) = (self.chat, self.now);
        let work = tokio::task::spawn_blocking(move || {
            let mut outside = outside.lock().unwrap_or_else(PoisonError::into_inner);
            let mut icebox = Icebox {
                outside: &mut *outside,
                blobs: &*blobs,
                chat,
                now,
                frozen: Vec::new(),
            };
            let messages = stored.into_iter().map(|message| icebox.message(message));
            let messages: Vec<Arc<UserMessage>> = messages.map(Arc::new).collect();
            (messages, icebox.frozen)
        });
        let (messages, frozen) = match work.await {
            Ok(done) => done,
            // A defect of ours: the turn ends in it, rather than with something said that nobody said.
            Err(died) => std::panic::resume_unwind(died.into_panic()),
        };
        if !frozen.is_empty() {
            let batch = Batch {
                seq: Seq(0),
                records: frozen.into_iter().map(Record::Frozen).collect(),
            };
            if let Err(error) = self.journal.append(batch).await {
                tracing::warn!(%error, "what references turned out to be is not kept");
            }
        }
        messages
    }
}

struct Icebox<'a> {
    outside: &'a mut dyn Sources,
    blobs: &'a dyn Blobs,
    chat: ChannelId,
    now: Timestamp,
    frozen: Vec<FrozenRecord>,
}

impl Icebox<'_> {
    fn message(&mut self, stored: StoredMessage) -> UserMessage {
        let metadata: Value = serde_json::from_slice(&stored.metadata).unwrap_or_default();
        let schema_version = metadata["schema_version"].as_i64().unwrap_or(1);
        let (rows, seen): (Vec<_>, Vec<_>) = stored.parts.into_iter().unzip();
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let values = rows
            .iter()
            .map(|row| serde_json::from_slice(&row.json).unwrap_or_default());
        let parts = version::read(values.collect(), schema_version);
        let mut resolved = BTreeMap::new();
        for (index, part) in parts.iter().enumerate() {
            let before = seen.get(index).and_then(|seen| self.thaw(seen.as_deref()?));
            let found = before.or_else(|| self.follow(ids.get(index)?, part));
            if let Some(found) = found {
                resolved.insert(index, found);
            }
        }
        UserMessage { parts, resolved }
    }

    fn thaw(&self, json: &[u8]) -> Option<Resolved> {
        let mut about: Object = serde_json::from_slice(json).ok()?;
        let body = match about.shift_remove("body") {
            None => None,
            Some(uri) => {
                let digest = Digest::from_uri(uri.as_str()?)?;
                match self.blobs.read(&digest, FROZEN_BYTES_MAX) {
                    Ok(Found::Body(body)) => Some(body),
                    Ok(Found::Missing | Found::TooLarge { .. }) | Err(_) => return None,
                }
            }
        };
        Resolved::from_stored(StoredResolution { about, body })
    }

    fn follow(&mut self, part_id: &str, part: &Part) -> Option<Resolved> {
        let resolved = resolve(part, self.outside, &InlineLimits::default())?;
        let StoredResolution { mut about, body } = resolved.to_stored();
        let digest = match body.map(|body| self.blobs.put(&body, self.now)) {
            None => None,
            Some(Ok(digest)) => Some(digest),
            Some(Err(error)) => {
                tracing::warn!(%error, "what a reference turned out to be is not kept");
                return Some(resolved);
            }
        };
        if let Some(digest) = &digest {
            about.insert("body".to_owned(), json!(digest.uri()));
        }
        self.frozen.push(FrozenRecord {
            part_id: part_id.to_owned(),
            chat: self.chat,
            json: Bytes::from(rpc::to_json(&about)),
            digest,
        });
        Some(resolved)
    }
}
