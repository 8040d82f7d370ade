//! Records into maps: first checked, then applied, so that a batch is whole.
//!
//! Must not know: how questions are answered.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use kernel::{
    Batch, ChannelId, ChannelRecord, ClientRecord, FileChangesRecord, FrozenRecord,
    ModelOutputRecord, Record, Seq,
};
use wire::state::Turn;
use wire::{ChannelUri, Digest, Timestamp};

use crate::journal::JournalError;
use crate::sorted_map::SortedMap;

use super::{ChannelRow, ContentReference, ForkedRange, JournalTables, TurnRow};

impl JournalTables {
    /// Whether the batch would break the journal's order, as the tables on disk would notice.
    pub(super) fn check(&self, batch: &Batch) -> Result<(), JournalError> {
        let mut new = NewKeys::default();
        for (index, record) in batch.records.iter().enumerate() {
            let checked = self.check_record(record, &mut new);
            checked.map_err(|reason| JournalError::BadRecord { index, reason })?;
        }
        Ok(())
    }

    fn check_record(&self, record: &Record, new: &mut NewKeys) -> Result<(), String> {
        match record {
            Record::Action { seq, channel, .. } => {
                let key = (channel.0, seq.0);
                if self.actions.contains_key(&key) || !new.actions.insert(key) {
                    return Err(format!("seq {} is used already in channel {}", seq.0, channel.0));
                }
            }
            Record::Turn { chat, n, .. } => {
                let key = (chat.0, *n);
                if self.turns.contains_key(&key) || !new.turns.insert(key) {
                    return Err(format!("turn {n} is used already in chat {}", chat.0));
                }
            }
            Record::Channel(channel) => new.uris.create(
                self,
                channel.id.0,
                channel.parent.map(|parent| parent.0),
                &channel.uri,
            )?,
            Record::Dispose { channel, .. } => new.uris.dispose(self, channel.0),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, batch: &Batch) {
        for record in &batch.records {
            self.apply_record(record);
        }
        self.seq = self.seq.max(batch.seq);
    }

    fn apply_record(&mut self, record: &Record) {
        match record {
            Record::Action { seq, channel, envelope } => {
                self.actions.insert((channel.0, seq.0), envelope.clone());
            }
            Record::Message(message) => {
                self.messages.insert(message.id.clone(), message.clone());
            }
            Record::MessageStarted { id, turn_id } => self.start_message(id, turn_id),
            Record::MessageGone { id } => {
                self.messages.remove(id);
                self.forget_parts();
            }
            Record::Frozen(frozen) => self.freeze(frozen),
            Record::PartReference { part_id, digest } => self.add_part_reference(part_id, *digest),
            Record::Channel(record) => self.put_channel(record),
            Record::Fork { chat, source, through_n, as_of } => {
                self.fork(*chat, source.0, *through_n, *as_of)
            }
            Record::Turn { chat, n, turn } => self.put_turn(chat.0, *n, turn),
            Record::HideTurns { chat, from_n, at } => self.hide_turns(chat.0, *from_n, *at),
            Record::Dispose { channel, at } => self.dispose(channel.0, *at),
            Record::Reference { channel, turn, digest, content_type } => {
                let (digest, channel, turn) = (*digest, channel.0, *turn);
                self.add_reference(ContentReference { digest, channel, turn }, content_type)
            }
            Record::Summary(summary) => {
                self.summaries.insert(summary.session.0, summary.clone());
            }
            Record::SummaryGone { session } => {
                self.summaries.remove(&session.0);
            }
            Record::Checkpoint { chat, turn_id, data } => {
                self.set_checkpoint(chat.0, turn_id, data.as_ref())
            }
            Record::Client(client) => self.put_client(client),
            Record::ClientGone { client_id } => self.forget_client(client_id),
            Record::Floor { client_id, floor } => {
                let key = (client_id.clone(), floor.channel.clone());
                self.floors.insert(key, floor.clone());
            }
            Record::FloorGone { client_id, channel } => {
                self.floors.remove(&(client_id.clone(), channel.clone()));
            }
            Record::ModelOutput(output) => self.put_output(output),
            Record::FileChanges(changes) => self.put_changes(changes),
            // For inspection from another process only: it cannot look into memory.
            Record::Lowered(_)
            | Record::Render(_)
            | Record::ModelCall(_)
            | Record::ModelCallEnd(_) => {}
            Record::Trim { through } => self.trim(*through),
            Record::Sweep { disposed_before, clients_before, clients_max } => {
                self.sweep_channels(*disposed_before);
                self.sweep_clients(*clients_before, *clients_max);
            }
        }
    }

    fn start_message(&mut self, id: &str, turn_id: &str) {
        if let Some(message) = self.messages.get_mut(id) {
            message.turn_id = Some(turn_id.to_owned());
        }
    }

    fn add_reference(&mut self, key: ContentReference, content_type: &Option<String>) {
        let known = self.references.entry(key).or_default();
        if content_type.is_some() {
            known.clone_from(content_type);
        }
    }

    fn set_checkpoint(&mut self, chat: u64, turn_id: &str, data: Option<&Bytes>) {
        match data {
            Some(data) => {
                let checkpoint = (turn_id.to_owned(), data.clone());
                self.checkpoints.insert(chat, checkpoint);
            }
            None => self.remove_checkpoint(chat, turn_id),
        }
    }

    fn put_turn(&mut self, chat: u64, n: u64, turn: &Arc<Turn>) {
        let turn = Arc::clone(turn);
        let hidden_at = None;
        self.turns.insert((chat, n), TurnRow { turn, hidden_at });
    }

    fn put_output(&mut self, output: &ModelOutputRecord) {
        let key = (output.chat.0, output.turn_id.clone(), output.round);
        self.outputs.insert(key, output.json.clone());
    }

    fn put_changes(&mut self, changes: &FileChangesRecord) {
        let key = (changes.channel.0, changes.turn_id.clone());
        self.file_changes.insert(key, changes.json.clone());
    }

    fn put_client(&mut self, client: &ClientRecord) {
        let id = client.client_id.clone();
        self.clients.insert(id, client.clone());
    }

    fn freeze(&mut self, frozen: &FrozenRecord) {
        // The first time counts, and only for a part that is still there.
        let id = &frozen.part_id;
        if !self.has_part(id) || self.frozen.contains_key(id) {
            return;
        }
        self.frozen.insert(id.clone(), frozen.json.clone());
        if let Some(digest) = frozen.digest {
            self.add_part_reference(id, digest);
        }
    }

    fn has_part(&self, id: &str) -> bool {
        let mut parts = self.messages.values().flat_map(|message| &message.parts);
        parts.any(|part| part.id == id)
    }

    fn add_part_reference(&mut self, part_id: &str, digest: Digest) {
        if self.has_part(part_id) {
            self.part_references.insert((digest, part_id.to_owned()));
        }
    }

    /// What parts of messages that are gone were frozen to, and referred to.
    fn forget_parts(&mut self) {
        let parts = self.messages.values().flat_map(|message| &message.parts);
        let ids: BTreeSet<&str> = parts.map(|part| part.id.as_str()).collect();
        self.frozen.retain(|id, _| ids.contains(id.as_str()));
        self.part_references.retain(|(_, id)| ids.contains(id.as_str()));
    }

    fn put_channel(&mut self, record: &ChannelRecord) {
        let mut channel = ChannelRow::of(record);
        if let Some(before) = self.channels.get(&record.id.0) {
            channel.disposed_at = before.disposed_at;
            if before.is_live() {
                self.live.remove(&before.uri);
            }
        }
        if channel.is_live() {
            self.live.insert(record.uri.clone(), record.id.0);
        }
        self.channels.insert(record.id.0, channel);
    }

    fn dispose(&mut self, channel: u64, at: Timestamp) {
        for (id, row) in &mut self.channels {
            if row.is_live() && (*id == channel || row.parent == Some(channel)) {
                row.disposed_at = Some(at);
                self.live.remove(&row.uri);
            }
        }
    }

    /// Only that of the same turn: a late removal must not take the checkpoint of the turn that came after.
    fn remove_checkpoint(&mut self, chat: u64, turn_id: &str) {
        let checkpoint = self.checkpoints.get(&chat);
        if checkpoint.is_some_and(|(of, _)| of == turn_id) {
            self.checkpoints.remove(&chat);
        }
    }

    fn fork(&mut self, chat: ChannelId, source: u64, through_n: u64, as_of: Seq) {
        let end_n = through_n.saturating_add(1);
        let mut ranges: Vec<ForkedRange> = self.ranges.get(&source).cloned().unwrap_or_default();
        for range in &mut ranges {
            range.end_n = range.visible_end_n.min(end_n);
            range.visible_end_n = range.end_n;
        }
        ranges.retain(|range| range.first_n < range.end_n);
        let first_n = ranges.iter().map(|range| range.end_n).max().unwrap_or(0);
        if first_n < end_n {
            ranges.push(ForkedRange { source, first_n, end_n, visible_end_n: end_n, as_of });
        }
        self.ranges.insert(chat.0, ranges);
    }

    fn hide_turns(&mut self, chat: u64, from_n: u64, at: Seq) {
        for (_, row) in self.turns.range_mut((chat, from_n)..=(chat, u64::MAX)) {
            row.hidden_at.get_or_insert(at);
        }
        for range in self.ranges.get_or_insert_with(chat, Vec::new) {
            range.visible_end_n = range.visible_end_n.min(from_n);
        }
    }

    fn trim(&mut self, through: Seq) {
        let channels = &self.channels;
        self.actions.retain(|(channel, seq), _| {
            let live = channels.get(channel).filter(|channel| channel.is_live());
            let not_in_head = live.is_some_and(|channel| *seq > channel.head_seq.0);
            *seq > through.0 || not_in_head
        });
        self.log_floor = self.log_floor.max(through);
    }

    fn sweep_channels(&mut self, before: Timestamp) {
        let is_due = |channel: &ChannelRow| channel.disposed_at.is_some_and(|at| at < before);
        let due: BTreeSet<u64> = self
            .channels
            .iter()
            .filter(|(_, channel)| is_due(channel))
            .map(|(id, _)| *id)
            .collect();
        self.actions.retain(|(channel, _), _| !due.contains(channel));
        self.ranges.retain(|chat, _| !due.contains(chat));
        self.checkpoints.retain(|chat, _| !due.contains(chat));
        let ranges = &self.ranges;
        self.turns.retain(|(chat, n), _| {
            let refers = |range: &ForkedRange| {
                range.source == *chat && (range.first_n..range.end_n).contains(n)
            };
            !due.contains(chat) || ranges.values().flatten().any(refers)
        });
        let turns = &self.turns;
        self.references.retain(|ContentReference { channel, turn, .. }, _| match turn {
            Some(n) => !due.contains(channel) || turns.contains_key(&(*channel, *n)),
            None => !due.contains(channel),
        });
        self.messages.retain(|_, message| {
            let mut rows = turns.range((message.chat.0, 0)..=(message.chat.0, u64::MAX));
            let has_turn = rows.any(|(_, row)| Some(&row.turn.id) == message.turn_id.as_ref());
            !due.contains(&message.chat.0) || has_turn
        });
        self.outputs.retain(|(chat, turn_id, _), _| {
            let mut rows = turns.range((*chat, 0)..=(*chat, u64::MAX));
            !due.contains(chat) || rows.any(|(_, row)| row.turn.id == *turn_id)
        });
        self.file_changes.retain(|(chat, turn_id), _| {
            let mut rows = turns.range((*chat, 0)..=(*chat, u64::MAX));
            !due.contains(chat) || rows.any(|(_, row)| row.turn.id == *turn_id)
        });
        // A channel whose turns forks still see stays behind, so that a later sweep finds them.
        self.channels.retain(|id, _| {
            !due.contains(id) || turns.range((*id, 0)..=(*id, u64::MAX)).next().is_some()
        });
        self.forget_parts();
    }

    fn sweep_clients(&mut self, seen_before: Timestamp, clients_max: u32) {
        let mut oldest: Vec<(i64, String)> =
            self.clients.values().map(|c| (c.last_seen_ms, c.client_id.clone())).collect();
        oldest.sort();
        let over = oldest.len().saturating_sub(clients_max as usize);
        for (index, (last_seen_ms, client_id)) in oldest.iter().enumerate() {
            if index < over || *last_seen_ms < seen_before.0 {
                self.forget_client(client_id);
            }
        }
    }

    fn forget_client(&mut self, client_id: &str) {
        self.clients.remove(client_id);
        self.floors.retain(|(of, _), _| of != client_id);
    }
}

/// What the records of a batch use that may be used once, before any of it is done.
#[derive(Default)]
struct NewKeys {
    actions: BTreeSet<(u64, u64)>,
    turns: BTreeSet<(u64, u64)>,
    uris: UriChanges,
}

/// What the records of a batch do to the URIs of live channels, before any of it is done.
#[derive(Default)]
struct UriChanges {
    /// Channels of this batch that live, with their session.
    live: SortedMap<u64, (Option<u64>, ChannelUri)>,
    /// Channels this batch disposes of.
    gone: BTreeSet<u64>,
}

impl UriChanges {
    fn create(
        &mut self,
        store: &JournalTables,
        id: u64,
        parent: Option<u64>,
        uri: &ChannelUri,
    ) -> Result<(), String> {
        if self.gone.contains(&id) || store.channels.get(&id).is_some_and(|c| !c.is_live()) {
            return Ok(());
        }
        let stored = store.live.get(uri).filter(|holder| !self.gone.contains(holder));
        let new = self.live.iter().filter(|(_, (_, taken))| taken == uri).map(|(id, _)| id);
        if stored.into_iter().chain(new).any(|holder| *holder != id) {
            return Err(format!("`{uri}` is the URI of another channel"));
        }
        self.live.insert(id, (parent, uri.clone()));
        Ok(())
    }

    fn dispose(&mut self, store: &JournalTables, channel: u64) {
        let stored = store.channels.iter().map(|(id, channel)| (*id, channel.parent));
        let new = self.live.iter().map(|(id, (parent, _))| (*id, *parent));
        let gone: Vec<u64> = stored
            .chain(new)
            .filter(|(id, parent)| *id == channel || *parent == Some(channel))
            .map(|(id, _)| id)
            .collect();
        self.live.retain(|id, _| !gone.contains(id));
        self.gone.extend(gone);
    }
}
