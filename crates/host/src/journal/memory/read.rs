//! Questions answered by looking through maps.
//!
//! Must not know: how the maps came to be what they are.

use kernel::{
    Answer, Boot, ChannelId, ClientRecord, EmptySessions, FileChangesRecord, FloorRecord, LogSlice,
    MessageRecord, ModelOutputRecord, Query, Seq, StoredChannel, StoredKind, StoredMessage,
    StoredTurn, SummaryRecord, TurnPage, TurnPosition,
};
use wire::{ChannelUri, Digest, Timestamp};

use super::{ChannelRow, ContentReference, ForkedRange, JournalTables, TurnRow};
use crate::journal::page::{CrossingTurn, PageBuilder};

impl JournalTables {
    pub(super) fn boot(&self) -> Boot {
        let live = || self.channels.iter().filter(|(_, channel)| channel.is_live());
        let root = live().find(|(id, _)| **id == ChannelId::ROOT.0);
        Boot {
            seq: self.seq,
            log_floor: self.log_floor,
            root: root.map(|(_, root)| root.head.clone()),
            root_private: root.map(|(_, root)| root.private.clone()).unwrap_or_default(),
            boot_work: live()
                .filter(|(_, channel)| channel.boot_work.to_bits() != 0)
                .map(|(_, channel)| (channel.uri.clone(), channel.kind, channel.boot_work))
                .collect(),
        }
    }

    pub(super) fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Channel { uri, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::LeftOut);
                Answer::Channel(self.open_channel(uri, page).map(Box::new))
            }
            Query::Turns { chat, before_n, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
                Answer::Turns(self.turns_before(chat.0, *before_n, page))
            }
            Query::Context { chat, through_n, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
                let context = self
                    .turns_of(chat.0)
                    .filter(|(n, ..)| n <= through_n)
                    .map(|(n, row, _)| (n, row));
                Answer::Turns(page_of(context, page))
            }
            Query::FindTurn { chat, turn_id } => Answer::FindTurn(self.find_turn(chat.0, turn_id)),
            Query::Client { client_id } => Answer::Client(self.client(client_id)),
            Query::Log { floors, through, bytes_max } => {
                Answer::Log(self.log(floors, *through, *bytes_max))
            }
            Query::Sessions { after, limit } => Answer::Sessions(self.sessions(*after, *limit)),
            Query::EmptySessions { created_before, limit } => {
                Answer::EmptySessions(self.empty_sessions(*created_before, *limit))
            }
            Query::ContentType { digest } => {
                Answer::ContentType(self.references_to(digest).flatten().next().cloned())
            }
            Query::Messages { chat, turn_ids } => {
                let of = |turn_id: &String| self.messages_of(chat.0, turn_id);
                Answer::Messages(turn_ids.iter().flat_map(of).collect())
            }
            Query::FileChanges { channel, turn_ids } => {
                let found =
                    turn_ids.iter().filter_map(|turn_id| self.changes_of(*channel, turn_id));
                Answer::FileChanges(found.collect())
            }
            Query::ModelOutputs { chat, turn_ids, bytes_max } => {
                Answer::ModelOutputs(self.outputs_of_turns(*chat, turn_ids, *bytes_max))
            }
            Query::Message { id } => {
                let found = self.messages.get(id);
                Answer::Messages(found.map(|message| self.message(message)).into_iter().collect())
            }
        }
    }

    /// What was recorded of models' answers in the last of some turns, as many as fit.
    fn outputs_of_turns(
        &self,
        chat: ChannelId,
        turn_ids: &[String],
        bytes_max: u64,
    ) -> Vec<ModelOutputRecord> {
        let mut left = bytes_max;
        let newest_first = turn_ids.iter().rev().map_while(|turn_id| {
            let outputs = self.outputs_of(chat, turn_id);
            let bytes: usize = outputs.iter().map(|output| output.json.len()).sum();
            left = left.checked_sub(bytes as u64)?;
            Some(outputs)
        });
        let mut found: Vec<Vec<ModelOutputRecord>> = newest_first.collect();
        found.reverse();
        found.into_iter().flatten().collect()
    }

    /// What was recorded of models' answers in a turn, from the nearest chat that has any.
    fn outputs_of(&self, chat: ChannelId, turn_id: &str) -> Vec<ModelOutputRecord> {
        let sources = self.ranges.get(&chat.0).into_iter().flatten().rev();
        let chats = std::iter::once(chat.0).chain(sources.map(|range| range.source));
        for of_chat in chats {
            let rounds = (of_chat, turn_id.to_owned(), 0)..=(of_chat, turn_id.to_owned(), u64::MAX);
            let rows = self.outputs.range(rounds);
            let found: Vec<ModelOutputRecord> = rows
                .map(|((_, turn_id, round), json)| ModelOutputRecord {
                    chat,
                    turn_id: turn_id.clone(),
                    round: *round,
                    json: json.clone(),
                })
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// What was changed in a turn, from the nearest chat that has it.
    fn changes_of(&self, channel: ChannelId, turn_id: &str) -> Option<FileChangesRecord> {
        let sources = self.ranges.get(&channel.0).into_iter().flatten().rev();
        let mut chats = std::iter::once(channel.0).chain(sources.map(|range| range.source));
        let json = chats.find_map(|chat| self.file_changes.get(&(chat, turn_id.to_owned())))?;
        Some(FileChangesRecord { channel, turn_id: turn_id.to_owned(), json: json.clone() })
    }

    /// The messages of a turn, from the nearest chat that has it.
    fn messages_of(&self, chat: u64, turn_id: &str) -> Vec<StoredMessage> {
        let sources = self.ranges.get(&chat).into_iter().flatten().rev();
        let chats = std::iter::once(chat).chain(sources.map(|range| range.source));
        for chat in chats {
            let of_turn = |message: &&MessageRecord| {
                message.chat.0 == chat && message.turn_id.as_deref() == Some(turn_id)
            };
            let found: Vec<StoredMessage> = self
                .messages
                .values()
                .filter(of_turn)
                .map(|message| self.message(message))
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    fn message(&self, message: &MessageRecord) -> StoredMessage {
        let parts = message.parts.iter();
        StoredMessage {
            id: message.id.clone(),
            turn_id: message.turn_id.clone(),
            metadata: message.metadata.clone(),
            parts: parts.map(|part| (part.clone(), self.frozen.get(&part.id).cloned())).collect(),
        }
    }

    /// Whether anything refers to some content.
    pub(super) fn refers_to(&self, digest: &Digest) -> bool {
        let mut parts = self.part_references.range((*digest, String::new())..);
        let of_a_part = parts.next().is_some_and(|(first, _)| first == digest);
        of_a_part || self.references_to(digest).next().is_some()
    }

    /// The content type that the references to some content give.
    fn references_to(&self, digest: &Digest) -> impl Iterator<Item = &Option<String>> {
        let of = |channel, turn| ContentReference { digest: *digest, channel, turn };
        let (first, last) = (of(0, None), of(u64::MAX, Some(u64::MAX)));
        self.references.range(first..=last).map(|(_, content_type)| content_type)
    }

    fn open_channel(&self, uri: &ChannelUri, page: PageBuilder) -> Option<StoredChannel> {
        let id = self.live.get(uri)?;
        let row = self.channels.get(id)?;
        let mut channel = self.stored_channel(*id, row);
        if row.kind == StoredKind::Chat {
            channel.turns = self.turns_before(*id, u64::MAX, page);
            channel.next_n = self.next_n(*id);
            channel.checkpoint = self.checkpoints.get(id).cloned();
        }
        channel.parent = row.parent.and_then(|parent| {
            let session = self.channels.get(&parent).filter(|session| session.is_live())?;
            Some(Box::new(self.stored_channel(parent, session)))
        });
        Some(channel)
    }

    fn stored_channel(&self, id: u64, row: &ChannelRow) -> StoredChannel {
        let later = self.actions.range((id, row.head_seq.0.saturating_add(1))..=(id, u64::MAX));
        StoredChannel {
            id: ChannelId(id),
            uri: row.uri.clone(),
            kind: row.kind,
            head: row.head.clone(),
            head_seq: row.head_seq,
            private: row.private.clone(),
            later: later.map(|((_, seq), envelope)| (Seq(*seq), envelope.clone())).collect(),
            turns: TurnPage::default(),
            next_n: 0,
            checkpoint: None,
            parent: None,
        }
    }

    /// Every turn that ever belonged to a chat, newest first, and whether it is visible there.
    fn turns_of(&self, chat: u64) -> impl Iterator<Item = (u64, &TurnRow, bool)> {
        let own = self
            .turns
            .range((chat, 0)..=(chat, u64::MAX))
            .rev()
            .map(|((_, n), row)| (*n, row, row.hidden_at.is_none()));
        let seen = |range: &ForkedRange| {
            let (end, as_of) = (range.visible_end_n, range.as_of);
            let rows = self.turns.range((range.source, range.first_n)..(range.source, range.end_n));
            rows.rev()
                .filter(move |(_, row)| row.hidden_at.is_none_or(|at| at > as_of))
                .map(move |((_, n), row)| (*n, row, *n < end))
        };
        own.chain(self.ranges.get(&chat).into_iter().flatten().rev().flat_map(seen))
    }

    fn turns_before(&self, chat: u64, before_n: u64, page: PageBuilder) -> TurnPage {
        let visible = self
            .turns_of(chat)
            .filter(|(n, _, visible)| *visible && *n < before_n)
            .map(|(n, row, _)| (n, row));
        page_of(visible, page)
    }

    fn next_n(&self, chat: u64) -> u64 {
        let own = self.turns.range((chat, 0)..=(chat, u64::MAX)).map(|((_, n), _)| n + 1);
        let seen = self.ranges.get(&chat).into_iter().flatten().map(|range| range.end_n);
        own.chain(seen).max().unwrap_or(0)
    }

    fn find_turn(&self, chat: u64, turn_id: &str) -> Option<TurnPosition> {
        self.turns_of(chat)
            .filter(|(_, row, _)| row.turn.id == turn_id)
            .map(|(n, _, visible)| TurnPosition { n, visible })
            .max_by_key(|found| (found.visible, found.n))
    }

    fn client(&self, client_id: &str) -> Option<(ClientRecord, Vec<FloorRecord>)> {
        let client = self.clients.get(client_id)?;
        let floors = self.floors.iter().filter(|((of, _), _)| of == client_id);
        Some((client.clone(), floors.map(|(_, floor)| floor.clone()).collect()))
    }

    fn log(&self, floors: &[(ChannelId, Seq)], through: Seq, bytes_max: u64) -> LogSlice {
        let mut actions = Vec::new();
        for (channel, floor) in floors {
            let above = (*floor).max(self.log_floor).0.saturating_add(1);
            for ((_, seq), envelope) in
                self.actions.range((channel.0, above)..=(channel.0, u64::MAX))
            {
                if *seq <= through.0 {
                    actions.push((Seq(*seq), *channel, envelope.clone()));
                }
            }
        }
        actions.sort_by_key(|(seq, channel, _)| (*seq, *channel));
        if actions.iter().map(|(_, _, envelope)| envelope.len() as u64).sum::<u64>() > bytes_max {
            return LogSlice { actions: Vec::new(), overflowed: true };
        }
        LogSlice { actions, overflowed: false }
    }

    fn sessions(&self, after: Option<(Timestamp, ChannelId)>, limit: u32) -> Vec<SummaryRecord> {
        let place = |summary: &SummaryRecord| (summary.modified, summary.session);
        let mut page: Vec<&SummaryRecord> = self
            .summaries
            .values()
            .filter(|summary| summary.is_listed())
            .filter(|summary| after.is_none_or(|after| place(summary) < after))
            .collect();
        page.sort_by_key(|summary| std::cmp::Reverse(place(summary)));
        page.into_iter().take(limit as usize).cloned().collect()
    }

    fn empty_sessions(&self, created_before: Timestamp, limit: u32) -> EmptySessions {
        let last_seen = |summary: &SummaryRecord| {
            let creator = summary.creator.as_ref().and_then(|creator| self.clients.get(creator));
            creator.map(|client| client.last_seen_ms)
        };
        // Since when nobody did anything with it.
        let since = |summary: &SummaryRecord| match last_seen(summary) {
            Some(seen) => summary.created.max(Timestamp(seen)),
            None => summary.created,
        };
        let empty = self.summaries.values().filter(|summary| summary.empty);
        let (mut due, others): (Vec<&SummaryRecord>, Vec<&SummaryRecord>) =
            empty.partition(|summary| since(summary) < created_before);
        due.sort_by_key(|summary| (summary.created, summary.session));
        let due = due.into_iter().take(limit as usize);
        EmptySessions {
            due: due.map(|summary| summary.uri.clone()).collect(),
            next_since: others.into_iter().map(since).min(),
            log_from: None, // its length alone bounds it
        }
    }
}

/// The turns that fit a page, of those that come newest first.
fn page_of<'a>(turns: impl Iterator<Item = (u64, &'a TurnRow)>, mut page: PageBuilder) -> TurnPage {
    let mut found = TurnPage::default();
    for (n, row) in turns {
        if !page.takes(row.turn.json.len() as u64) {
            found.older = true;
            break;
        }
        found.turns.push(StoredTurn {
            n,
            id: row.turn.id.clone(),
            outcome: row.turn.outcome,
            json: row.turn.json.clone(),
        });
    }
    found.turns.reverse();
    found
}
