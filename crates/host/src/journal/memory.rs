//! The journal in memory: for tests, for simulated crashes, and to measure what the disk costs.
//!
//! Promises: the same contract as on disk, by the simplest means. Clones share their contents, so what a crashed host
//! wrote can be opened again.
//! Must not know: files.

mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use kernel::{
    Answer, Batch, Boot, BootWork, ChannelRecord, ClientRecord, FloorRecord, MessageRecord, Query,
    Seq, StoredKind, SummaryRecord,
};
use parking_lot::Mutex;
use wire::state::Turn;
use wire::{ChannelUri, Digest, Timestamp};

use super::{Journal, JournalError, JournalReader};
use crate::sorted_map::SortedMap;

/// A handle on a journal in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    store: Arc<Mutex<JournalTables>>,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Journal for Memory {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        Ok(self.store.lock().boot())
    }

    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        let mut store = self.store.lock();
        store.check(batch)?;
        store.apply(batch);
        Ok(())
    }

    fn probe(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        let store = self.store.lock();
        let unreferenced = digests.iter().filter(|digest| !store.refers_to(digest));
        Ok(unreferenced.copied().collect())
    }

    fn release_space(&mut self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        Ok(Box::new(self.clone()))
    }
}

impl JournalReader for Memory {
    fn read(&mut self, query: &Query) -> Result<Answer, JournalError> {
        Ok(self.store.lock().answer(query))
    }
}

/// Reference to some content, by a channel or by a turn of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ContentReference {
    digest: Digest,
    channel: u64,
    turn: Option<u64>,
}

/// Everything that was written, by number.
#[derive(Debug, Default)]
struct JournalTables {
    seq: Seq,
    log_floor: Seq,
    channels: BTreeMap<u64, ChannelRow>,
    /// The live channels by URI.
    live: BTreeMap<ChannelUri, u64>,
    /// By channel and seq.
    actions: BTreeMap<(u64, u64), Bytes>,
    /// By chat and number.
    turns: BTreeMap<(u64, u64), TurnRow>,
    /// What a fork sees of other chats, oldest first.
    ranges: SortedMap<u64, Vec<ForkedRange>>,
    summaries: SortedMap<u64, SummaryRecord>,
    clients: SortedMap<String, ClientRecord>,
    floors: SortedMap<(String, ChannelUri), FloorRecord>,
    checkpoints: SortedMap<u64, (String, Bytes)>,
    /// The type of content by who refers to it: a channel, or a turn of it.
    references: BTreeMap<ContentReference, Option<String>>,
    messages: BTreeMap<String, MessageRecord>,
    /// By chat, turn and round.
    outputs: BTreeMap<(u64, String, u64), Bytes>,
    file_changes: BTreeMap<(u64, String), Bytes>,
    /// What parts were frozen to.
    frozen: BTreeMap<String, Bytes>,
    /// Content, and the part of a message that refers to it.
    part_references: BTreeSet<(Digest, String)>,
}

#[derive(Debug)]
struct ChannelRow {
    uri: ChannelUri,
    kind: StoredKind,
    parent: Option<u64>,
    /// Encoded when written, as on disk: a state that changes afterwards must not change the past.
    head: Bytes,
    head_seq: Seq,
    boot_work: BootWork,
    private: Bytes,
    disposed_at: Option<Timestamp>,
}

impl ChannelRow {
    fn of(record: &ChannelRecord) -> Self {
        Self {
            uri: record.uri.clone(),
            kind: record.kind,
            parent: record.parent.map(|parent| parent.0),
            head: Bytes::from(record.head.encode()),
            head_seq: record.head_seq,
            boot_work: record.boot_work,
            private: record.private.clone(),
            disposed_at: None,
        }
    }

    fn is_live(&self) -> bool {
        self.disposed_at.is_none()
    }
}

#[derive(Debug)]
struct TurnRow {
    turn: Arc<Turn>,
    hidden_at: Option<Seq>,
}

/// Turns `first_n..end_n` of `source` belong to a fork as they were visible at `as_of`; it shows those below
/// `visible_end_n`.
#[derive(Debug, Clone)]
struct ForkedRange {
    source: u64,
    first_n: u64,
    end_n: u64,
    visible_end_n: u64,
    as_of: Seq,
}
