//! Questions answered from rows, inside one read transaction.
//!
//! Promises: every question is answered through an index; everything in an answer is of the same moment. What cannot be
//! understood is an error, never left out.
//! Must not know: who asks, and what is in memory already.

mod list;
mod turns;

use bytes::Bytes;
use kernel::{
    Answer, Boot, BootWork, ChannelId, FileChangesRecord, LogSlice, ModelOutputRecord, PartRecord,
    Query, Seq, StoredChannel, StoredKind, StoredMessage, TurnPage,
};
use tokio_postgres::Row;
use wire::{ChannelUri, Digest};

use super::connection::{PooledConnection, StatementError, int};
use crate::journal::page::{CrossingTurn, PageBuilder};

/// Why a query has no answer, for the operator.
#[derive(Debug)]
pub(super) struct PgReadError(pub(super) String);

pub(super) type PgReadResult<T> = Result<T, PgReadError>;

impl From<StatementError> for PgReadError {
    fn from(error: StatementError) -> Self {
        Self(error.words())
    }
}

impl From<tokio_postgres::Error> for PgReadError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(error.to_string())
    }
}

/// A read transaction in a space.
pub(super) struct SpaceReader<'c> {
    pub conn: &'c mut PooledConnection,
    pub space: i64,
    pub log_floor: i64,
    /// For how many days actions are kept; zero: their number alone bounds them.
    pub log_days: u64,
}

impl SpaceReader<'_> {
    pub(super) async fn answer(&mut self, query: &Query) -> PgReadResult<Answer> {
        Ok(match query {
            Query::Channel { uri, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::LeftOut);
                Answer::Channel(self.open_channel(uri, page).await?.map(Box::new))
            }
            Query::Turns { chat, before_n, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
                Answer::Turns(self.turns_before(*chat, *before_n, page).await?)
            }
            Query::Context { chat, through_n, turns_max, bytes_max } => {
                let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
                Answer::Turns(self.context(*chat, *through_n, page).await?)
            }
            Query::FindTurn { chat, turn_id } => {
                Answer::FindTurn(self.find_turn(*chat, turn_id).await?)
            }
            Query::Client { client_id } => Answer::Client(self.client(client_id).await?),
            Query::Log { floors, through, bytes_max } => {
                Answer::Log(self.log(floors, *through, *bytes_max).await?)
            }
            Query::Sessions { after, limit } => {
                Answer::Sessions(self.sessions(*after, *limit).await?)
            }
            Query::EmptySessions { created_before, limit } => {
                Answer::EmptySessions(self.empty_sessions(*created_before, *limit).await?)
            }
            Query::ContentType { digest } => Answer::ContentType(self.content_type(digest).await?),
            Query::Messages { chat, turn_ids } => {
                Answer::Messages(self.messages_of(*chat, turn_ids).await?)
            }
            Query::ModelOutputs { chat, turn_ids, bytes_max } => {
                Answer::ModelOutputs(self.outputs_of(*chat, turn_ids, *bytes_max).await?)
            }
            Query::FileChanges { channel, turn_ids } => {
                Answer::FileChanges(self.changes_of(*channel, turn_ids).await?)
            }
            Query::Message { id } => {
                let sql = "SELECT id, turn_id, metadata FROM greenroom.message WHERE space = $1 AND id = $2";
                let rows = self.conn.query(sql, &[&self.space, id]).await?;
                Answer::Messages(self.with_parts(&rows).await?)
            }
        })
    }

    pub(super) async fn boot(&mut self, seq: i64) -> PgReadResult<Boot> {
        let root = "SELECT head.bytes, head.private FROM greenroom.channel JOIN greenroom.head
                 ON head.space = channel.space AND head.channel = channel.id
             WHERE channel.space = $1 AND channel.id = 0 AND disposed_at IS NULL";
        let root = self.conn.query(root, &[&self.space]).await?;
        let duties = "SELECT uri, kind, duty FROM greenroom.channel
             WHERE space = $1 AND duty <> 0 AND disposed_at IS NULL ORDER BY id";
        let mut boot_work = Vec::new();
        for row in self.conn.query(duties, &[&self.space]).await? {
            let duty: i16 = row.try_get(2)?;
            let duty = u8::try_from(duty).map_err(|_| PgReadError(format!("{duty} is no duty")))?;
            boot_work.push((uri_at(&row, 0)?, kind_at(&row, 1)?, BootWork::from_bits(duty)));
        }
        let (bytes, private) = match root.first() {
            Some(row) => (Some(bytes_at(row, 0)?), bytes_at(row, 1)?),
            None => (None, Bytes::new()),
        };
        Ok(Boot {
            seq: Seq(number(seq)?),
            log_floor: Seq(number(self.log_floor)?),
            root: bytes,
            root_private: private,
            boot_work,
        })
    }

    async fn open_channel(
        &mut self,
        uri: &ChannelUri,
        page: PageBuilder,
    ) -> PgReadResult<Option<StoredChannel>> {
        let sql = "SELECT id, uri, kind, head_seq, parent, private, bytes FROM greenroom.channel
             JOIN greenroom.head ON head.space = channel.space AND head.channel = channel.id
             WHERE channel.space = $1 AND uri = $2 AND disposed_at IS NULL";
        let rows = self.conn.query(sql, &[&self.space, &uri.as_str()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut channel = self.channel_at(row).await?;
        if channel.kind == StoredKind::Chat {
            channel.turns = self.turns_before(channel.id, u64::MAX, page).await?;
            channel.next_n = self.next_n(channel.id).await?;
            channel.checkpoint = self.checkpoint(channel.id).await?;
        }
        if let Some(parent) = row.try_get::<_, Option<i64>>(4)? {
            let sql =
                "SELECT id, uri, kind, head_seq, parent, private, bytes FROM greenroom.channel
                 JOIN greenroom.head ON head.space = channel.space AND head.channel = channel.id
                 WHERE channel.space = $1 AND id = $2 AND disposed_at IS NULL";
            let rows = self.conn.query(sql, &[&self.space, &parent]).await?;
            if let Some(row) = rows.first() {
                channel.parent = Some(Box::new(self.channel_at(row).await?));
            }
        }
        Ok(Some(channel))
    }

    /// A channel's row and the actions that came after its head; nothing that only chats have.
    async fn channel_at(&mut self, row: &Row) -> PgReadResult<StoredChannel> {
        let id = ChannelId(number(row.try_get(0)?)?);
        let head_seq: i64 = row.try_get(3)?;
        let sql = "SELECT seq, bytes FROM greenroom.action
             WHERE space = $1 AND channel = $2 AND seq > $3 ORDER BY seq";
        let rows = self.conn.query(sql, &[&self.space, &int(id.0), &head_seq]).await?;
        let later = rows.iter().map(|row| Ok((Seq(number(row.try_get(0)?)?), bytes_at(row, 1)?)));
        Ok(StoredChannel {
            id,
            uri: uri_at(row, 1)?,
            kind: kind_at(row, 2)?,
            head: bytes_at(row, 6)?,
            head_seq: Seq(number(head_seq)?),
            private: bytes_at(row, 5)?,
            later: later.collect::<PgReadResult<_>>()?,
            turns: TurnPage::default(),
            next_n: 0,
            checkpoint: None,
            parent: None,
        })
    }

    async fn checkpoint(&mut self, chat: ChannelId) -> PgReadResult<Option<(String, Bytes)>> {
        let sql = "SELECT turn_id, data FROM greenroom.checkpoint WHERE space = $1 AND chat = $2";
        let rows = self.conn.query(sql, &[&self.space, &int(chat.0)]).await?;
        match rows.first() {
            Some(row) => Ok(Some((row.try_get(0)?, bytes_at(row, 1)?))),
            None => Ok(None),
        }
    }

    /// Sizes before bytes: what would overflow is not fetched.
    async fn log(
        &mut self,
        floors: &[(ChannelId, Seq)],
        through: Seq,
        bytes_max: u64,
    ) -> PgReadResult<LogSlice> {
        let channels: Vec<i64> = floors.iter().map(|(channel, _)| int(channel.0)).collect();
        let above: Vec<i64> =
            floors.iter().map(|(_, floor)| int(floor.0).max(self.log_floor)).collect();
        let sum = "SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM unnest($2::bigint[], $3::bigint[]) AS f(c, q)
             JOIN greenroom.action ON space = $1 AND channel = f.c AND seq > f.q AND seq <= $4";
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&self.space, &channels, &above, &int(through.0)];
        let rows = self.conn.query(sum, &values).await?;
        let bytes: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        if number(bytes)? > bytes_max {
            return Ok(LogSlice { actions: Vec::new(), overflowed: true });
        }
        let sql = "SELECT seq, channel, bytes FROM unnest($2::bigint[], $3::bigint[]) AS f(c, q)
             JOIN greenroom.action ON space = $1 AND channel = f.c AND seq > f.q AND seq <= $4 ORDER BY seq, channel";
        let rows = self.conn.query(sql, &values).await?;
        let actions = rows.iter().map(|row| {
            let (seq, channel) = (number(row.try_get(0)?)?, number(row.try_get(1)?)?);
            Ok((Seq(seq), ChannelId(channel), bytes_at(row, 2)?))
        });
        Ok(LogSlice { actions: actions.collect::<PgReadResult<_>>()?, overflowed: false })
    }

    async fn content_type(&mut self, digest: &Digest) -> PgReadResult<Option<String>> {
        let sql = "SELECT content_type FROM greenroom.reference
             WHERE space = $1 AND digest = $2 AND content_type IS NOT NULL LIMIT 1";
        let digest = &digest.as_bytes()[..];
        let rows = self.conn.query(sql, &[&self.space, &digest]).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
    }

    /// A chat and those it was forked from, the nearest first.
    async fn with_sources(&mut self, chat: ChannelId) -> PgReadResult<Vec<i64>> {
        let sql = "SELECT source FROM greenroom.turn_range WHERE space = $1 AND chat = $2 ORDER BY pos DESC";
        let rows = self.conn.query(sql, &[&self.space, &int(chat.0)]).await?;
        let sources = rows.iter().map(|row| Ok(row.try_get(0)?));
        std::iter::once(Ok(int(chat.0))).chain(sources).collect()
    }

    /// The messages of turns, each from the nearest chat that has it.
    async fn messages_of(
        &mut self,
        chat: ChannelId,
        turn_ids: &[String],
    ) -> PgReadResult<Vec<StoredMessage>> {
        let chats = self.with_sources(chat).await?;
        let sql = "SELECT id, turn_id, metadata FROM greenroom.message
             WHERE space = $1 AND chat = $2 AND turn_id = $3 ORDER BY id COLLATE \"C\"";
        let mut found = Vec::new();
        for turn_id in turn_ids {
            for chat in &chats {
                let rows = self.conn.query(sql, &[&self.space, chat, turn_id]).await?;
                if !rows.is_empty() {
                    found.extend(self.with_parts(&rows).await?);
                    break;
                }
            }
        }
        Ok(found)
    }

    async fn with_parts(&mut self, rows: &[Row]) -> PgReadResult<Vec<StoredMessage>> {
        let sql = "SELECT part.id, type, part.json, frozen.json FROM greenroom.part
             LEFT JOIN greenroom.frozen ON frozen.space = part.space AND frozen.part = part.id
             WHERE part.space = $1 AND message = $2 ORDER BY pos";
        let mut messages = Vec::new();
        for row in rows {
            let id: String = row.try_get(0)?;
            let parts = self.conn.query(sql, &[&self.space, &id]).await?;
            let parts = parts.iter().map(|row| {
                let part = PartRecord {
                    id: row.try_get(0)?,
                    kind: row.try_get(1)?,
                    json: bytes_at(row, 2)?,
                };
                let frozen: Option<Vec<u8>> = row.try_get(3)?;
                Ok((part, frozen.map(Bytes::from)))
            });
            messages.push(StoredMessage {
                turn_id: row.try_get(1)?,
                metadata: bytes_at(row, 2)?,
                parts: parts.collect::<PgReadResult<_>>()?,
                id,
            });
        }
        Ok(messages)
    }

    /// What turns changed in files, each from the nearest chat that has any.
    async fn changes_of(
        &mut self,
        channel: ChannelId,
        turn_ids: &[String],
    ) -> PgReadResult<Vec<FileChangesRecord>> {
        let chats = self.with_sources(channel).await?;
        let sql = "SELECT json FROM greenroom.file_changes
             WHERE space = $1 AND channel = $2 AND turn_id = $3";
        let mut found = Vec::new();
        for turn_id in turn_ids {
            for of_chat in &chats {
                let rows = self.conn.query(sql, &[&self.space, of_chat, turn_id]).await?;
                if let Some(row) = rows.first() {
                    found.push(FileChangesRecord {
                        channel,
                        turn_id: turn_id.clone(),
                        json: bytes_at(row, 0)?,
                    });
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The outputs of the last of some turns, as many as fit, each from the nearest chat that has any.
    async fn outputs_of(
        &mut self,
        chat: ChannelId,
        turn_ids: &[String],
        bytes_max: u64,
    ) -> PgReadResult<Vec<ModelOutputRecord>> {
        let chats = self.with_sources(chat).await?;
        let sql = "SELECT round, json FROM greenroom.model_output
             WHERE space = $1 AND chat = $2 AND turn_id = $3 ORDER BY round";
        let (mut found, mut left) = (Vec::new(), bytes_max);
        for turn_id in turn_ids.iter().rev() {
            let mut outputs = Vec::new();
            for of_chat in &chats {
                for row in self.conn.query(sql, &[&self.space, of_chat, turn_id]).await? {
                    outputs.push(ModelOutputRecord {
                        chat,
                        turn_id: turn_id.clone(),
                        round: number(row.try_get(0)?)?,
                        json: bytes_at(&row, 1)?,
                    });
                }
                if !outputs.is_empty() {
                    break;
                }
            }
            let bytes: u64 = outputs.iter().map(|output| output.json.len() as u64).sum();
            let Some(rest) = left.checked_sub(bytes) else {
                break; // there is no room for it, nor for those before it
            };
            left = rest;
            found.push(outputs);
        }
        found.reverse();
        Ok(found.into_iter().flatten().collect())
    }
}

fn bytes_at(row: &Row, column: usize) -> PgReadResult<Bytes> {
    Ok(Bytes::from(row.try_get::<_, Vec<u8>>(column)?))
}

fn number(stored: i64) -> PgReadResult<u64> {
    u64::try_from(stored).map_err(|_| PgReadError(format!("{stored} where a count should be")))
}

fn uri_at(row: &Row, column: usize) -> PgReadResult<ChannelUri> {
    let text: String = row.try_get(column)?;
    ChannelUri::parse(&text).map_err(|error| PgReadError(format!("the channel `{text}`: {error}")))
}

fn kind_at(row: &Row, column: usize) -> PgReadResult<StoredKind> {
    let code: i16 = row.try_get(column)?;
    let kind = u8::try_from(code).ok().and_then(StoredKind::from_code);
    kind.ok_or_else(|| PgReadError(format!("{code} is no kind of channel")))
}
