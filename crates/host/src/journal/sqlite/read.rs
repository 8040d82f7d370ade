//! Questions answered from rows, inside one read transaction.
//!
//! Promises: every question is answered through an index, in time that depends on the answer and not on what else the
//! journal holds. What cannot be understood is an error, never left out.
//! Must not know: who asks, and what is in memory already.

pub(super) mod list;
pub(super) mod turns;

use bytes::Bytes;
use kernel::{
    Answer, Boot, BootWork, ChannelId, LogSlice, Query, Seq, StoredChannel, StoredKind, TurnPage,
};
use rusqlite::{Connection, OptionalExtension, Row};
use wire::ChannelUri;

use super::{actions, changes, int, messages, outputs, references};
use crate::journal::JournalError;
use crate::journal::page::{CrossingTurn, PageBuilder};

pub(super) const DUTIES: &str = "SELECT uri, kind, duty FROM channel INDEXED BY channel_duty
     WHERE duty != 0 AND disposed_at IS NULL ORDER BY id";

pub(super) const CHANNEL_BY_URI: &str =
    "SELECT id, uri, kind, head_seq, parent, private, head FROM channel
     WHERE uri = ?1 AND disposed_at IS NULL";

pub(super) const CHANNEL_BY_ID: &str =
    "SELECT id, uri, kind, head_seq, parent, private, head FROM channel
     WHERE id = ?1 AND disposed_at IS NULL";

/// Why a query has no answer, for the operator.
#[derive(Debug)]
pub(super) struct ReadError(String);

pub(super) type ReadResult<T> = Result<T, ReadError>;

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<ReadError> for JournalError {
    fn from(ReadError(reason): ReadError) -> Self {
        Self::Unreadable(reason)
    }
}

pub(super) fn answer(conn: &Connection, query: &Query) -> ReadResult<Answer> {
    Ok(match query {
        Query::Channel { uri, turns_max, bytes_max } => {
            let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::LeftOut);
            Answer::Channel(open_channel(conn, uri, page)?.map(Box::new))
        }
        Query::Turns { chat, before_n, turns_max, bytes_max } => {
            let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
            Answer::Turns(turns::before(conn, *chat, *before_n, page)?)
        }
        Query::Context { chat, through_n, turns_max, bytes_max } => {
            let page = PageBuilder::new(*turns_max, *bytes_max, CrossingTurn::Included);
            Answer::Turns(turns::context(conn, *chat, *through_n, page)?)
        }
        Query::FindTurn { chat, turn_id } => Answer::FindTurn(turns::find(conn, *chat, turn_id)?),
        Query::Client { client_id } => Answer::Client(list::client(conn, client_id)?),
        Query::Log { floors, through, bytes_max } => {
            Answer::Log(log(conn, floors, *through, *bytes_max)?)
        }
        Query::Sessions { after, limit } => Answer::Sessions(list::sessions(conn, *after, *limit)?),
        Query::EmptySessions { created_before, limit } => {
            Answer::EmptySessions(list::empty_sessions(conn, *created_before, *limit)?)
        }
        Query::ContentType { digest } => {
            Answer::ContentType(references::content_type(conn, digest)?)
        }
        Query::Messages { chat, turn_ids } => {
            Answer::Messages(messages::of_turns(conn, *chat, turn_ids)?)
        }
        Query::FileChanges { channel, turn_ids } => {
            Answer::FileChanges(changes::of_turns(conn, *channel, turn_ids)?)
        }
        Query::ModelOutputs { chat, turn_ids, bytes_max } => {
            Answer::ModelOutputs(outputs::of_turns(conn, *chat, turn_ids, *bytes_max)?)
        }
        Query::Message { id } => Answer::Messages(messages::by_id(conn, id)?.into_iter().collect()),
    })
}

pub(super) fn boot(conn: &Connection) -> ReadResult<Boot> {
    let root = conn
        .prepare_cached("SELECT head, private FROM channel WHERE id = 0 AND disposed_at IS NULL")?
        .query_row([], |row| Ok((bytes_at(row, 0)?, bytes_at(row, 1)?)))
        .optional()?;
    let mut boot_work = Vec::new();
    let mut statement = conn.prepare_cached(DUTIES)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        boot_work.push((uri_at(row, 0)?, kind_at(row, 1)?, BootWork::from_bits(row.get(2)?)));
    }
    let (root, root_private) = root.unzip();
    Ok(Boot {
        seq: meta(conn, "seq")?,
        log_floor: meta(conn, "log_floor")?,
        root,
        root_private: root_private.unwrap_or_default(),
        boot_work,
    })
}

fn meta(conn: &Connection, key: &str) -> ReadResult<Seq> {
    let mut statement = conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    Ok(Seq(number(statement.query_row([key], |row| row.get(0))?)?))
}

fn open_channel(
    conn: &Connection,
    uri: &ChannelUri,
    page: PageBuilder,
) -> ReadResult<Option<StoredChannel>> {
    let mut statement = conn.prepare_cached(CHANNEL_BY_URI)?;
    let mut rows = statement.query([uri.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut channel = channel_at(conn, row)?;
    if channel.kind == StoredKind::Chat {
        channel.turns = turns::before(conn, channel.id, u64::MAX, page)?;
        channel.next_n = turns::next_n(conn, channel.id)?;
        channel.checkpoint = checkpoint(conn, channel.id)?;
    }
    channel.parent = match row.get::<_, Option<i64>>(4)? {
        Some(parent) => session(conn, parent)?.map(Box::new),
        None => None,
    };
    Ok(Some(channel))
}

fn session(conn: &Connection, id: i64) -> ReadResult<Option<StoredChannel>> {
    let mut statement = conn.prepare_cached(CHANNEL_BY_ID)?;
    let mut rows = statement.query([id])?;
    match rows.next()? {
        Some(row) => Ok(Some(channel_at(conn, row)?)),
        None => Ok(None),
    }
}

/// A channel's row and the actions that came after its head; nothing that only chats have.
fn channel_at(conn: &Connection, row: &Row<'_>) -> ReadResult<StoredChannel> {
    let id = ChannelId(number(row.get(0)?)?);
    let head_seq = Seq(number(row.get(3)?)?);
    Ok(StoredChannel {
        id,
        uri: uri_at(row, 1)?,
        kind: kind_at(row, 2)?,
        head: bytes_at(row, 6)?,
        head_seq,
        private: bytes_at(row, 5)?,
        later: later(conn, id, head_seq)?,
        turns: TurnPage::default(),
        next_n: 0,
        checkpoint: None,
        parent: None,
    })
}

fn later(conn: &Connection, channel: ChannelId, head_seq: Seq) -> ReadResult<Vec<(Seq, Bytes)>> {
    let mut actions = Vec::new();
    actions::read(conn, channel, head_seq, Seq(u64::MAX), |seq, envelope| {
        actions.push((seq, envelope));
        true
    })?;
    actions.into_iter().map(|(seq, envelope)| Ok((Seq(number(seq)?), envelope))).collect()
}

fn checkpoint(conn: &Connection, chat: ChannelId) -> ReadResult<Option<(String, Bytes)>> {
    let found = conn
        .prepare_cached("SELECT turn_id, data FROM checkpoint WHERE chat = ?1")?
        .query_row([int(chat.0)], |row| Ok((row.get(0)?, bytes_at(row, 1)?)))
        .optional()?;
    Ok(found)
}

/// Channel by channel, then sorted: at most `bytes_max` is ever held, and a slice that overflows is of no use anyway.
fn log(
    conn: &Connection,
    floors: &[(ChannelId, Seq)],
    through: Seq,
    bytes_max: u64,
) -> ReadResult<LogSlice> {
    let log_floor = meta(conn, "log_floor")?;
    let mut found = Vec::new();
    let mut size = 0_u64;
    for (channel, floor) in floors {
        let above = (*floor).max(log_floor);
        actions::read(conn, *channel, above, through, |seq, envelope| {
            size = size.saturating_add(envelope.len() as u64);
            found.push((seq, *channel, envelope));
            size <= bytes_max
        })?;
        if size > bytes_max {
            return Ok(LogSlice { actions: Vec::new(), overflowed: true });
        }
    }
    found.sort_by_key(|(seq, channel, _)| (*seq, *channel));
    let actions = found
        .into_iter()
        .map(|(seq, channel, envelope)| Ok((Seq(number(seq)?), channel, envelope)));
    Ok(LogSlice { actions: actions.collect::<ReadResult<_>>()?, overflowed: false })
}

fn bytes_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    row.get::<_, Vec<u8>>(column).map(Bytes::from)
}

fn number(stored: i64) -> ReadResult<u64> {
    u64::try_from(stored).map_err(|_| ReadError(format!("{stored} where a count should be")))
}

fn uri_at(row: &Row<'_>, column: usize) -> ReadResult<ChannelUri> {
    let text: String = row.get(column)?;
    ChannelUri::parse(&text).map_err(|error| ReadError(format!("the channel `{text}`: {error}")))
}

fn kind_at(row: &Row<'_>, column: usize) -> ReadResult<StoredKind> {
    let code = row.get(column)?;
    StoredKind::from_code(code).ok_or_else(|| ReadError(format!("{code} is not a kind of channel")))
}
