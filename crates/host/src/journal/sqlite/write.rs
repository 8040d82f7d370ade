//! Records into rows, inside the transaction of their batch.
//!
//! Promises: what would break the journal's order (a turn number or a seq used twice in a channel, two live channels
//! of one URI) or is too large for a row is an error that names the record, and takes the whole batch with it.
//! Must not know: when to commit.

use kernel::{
    Batch, ChannelId, ChannelRecord, ClientRecord, FloorRecord, Record, Seq, SummaryRecord,
};
use rusqlite::{Connection, Error, ErrorCode, Result, ToSql, params};
use wire::state::Turn;

use super::actions::{self, ActionWriter};
use super::read::list;
use super::{calls, changes, int, messages, outputs, references, renders, sweep, unwritten};
use crate::journal::JournalError;

pub(super) const HIDE_TURNS: &str =
    "UPDATE turn SET hidden_at = ?3 WHERE channel = ?1 AND n >= ?2 AND hidden_at IS NULL";

pub(super) const DISPOSE_CHATS: &str =
    "UPDATE channel SET disposed_at = ?2 WHERE parent = ?1 AND disposed_at IS NULL";

pub(super) fn batch(conn: &Connection, batch: &Batch) -> std::result::Result<(), JournalError> {
    let mut actions = ActionWriter::new(conn).map_err(unwritten)?;
    for (index, record) in batch.records.iter().enumerate() {
        write(conn, record, &mut actions).map_err(|error| unwritten_record(index, error))?;
    }
    run(conn, "UPDATE meta SET value = max(value, ?1) WHERE key = 'seq'", &[&int(batch.seq.0)])
        .map_err(unwritten)
}

/// Whether it is the record that cannot be written, or anything at all.
fn unwritten_record(index: usize, error: Error) -> JournalError {
    let is_its_own = match &error {
        Error::ToSqlConversionFailure(_) => true,
        error => matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::TooBig | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch)
        ),
    };
    if is_its_own {
        JournalError::BadRecord { index, reason: error.to_string() }
    } else {
        unwritten(error)
    }
}

fn write(conn: &Connection, record: &Record, actions: &mut ActionWriter<'_>) -> Result<()> {
    match record {
        Record::Action { seq, channel, envelope } => actions.put(*channel, *seq, envelope),
        Record::Message(message) => messages::put(conn, message),
        Record::MessageStarted { id, turn_id } => messages::started(conn, id, turn_id),
        Record::MessageGone { id } => messages::forget(conn, id),
        Record::Frozen(frozen) => messages::freeze(conn, frozen),
        Record::PartReference { part_id, digest } => references::put_of_part(conn, part_id, digest),
        Record::Lowered(lowered) => messages::lowered(conn, lowered),
        Record::ModelOutput(output) => outputs::put(conn, output),
        Record::FileChanges(changes) => changes::put(conn, changes),
        Record::ModelCall(call) => calls::put(conn, call),
        Record::ModelCallEnd(end) => calls::put_end(conn, end),
        Record::Channel(channel) => put_channel(conn, channel),
        Record::Fork { chat, source, through_n, as_of } => {
            fork(conn, *chat, *source, *through_n, *as_of)
        }
        Record::Turn { chat, n, turn } => put_turn(conn, *chat, *n, turn),
        Record::HideTurns { chat, from_n, at } => hide_turns(conn, *chat, *from_n, *at),
        Record::Dispose { channel, at } => dispose(conn, *channel, at.0),
        Record::Reference { channel, turn, digest, content_type } => {
            references::put(conn, *channel, *turn, digest, content_type.as_deref())
        }
        Record::Summary(summary) => put_summary(conn, summary),
        Record::SummaryGone { session } => {
            run(conn, "DELETE FROM summary WHERE session = ?1", &[&int(session.0)])
        }
        Record::Checkpoint { chat, turn_id, data } => {
            put_checkpoint(conn, *chat, turn_id, data.as_deref())
        }
        Record::Client(client) => put_client(conn, client),
        Record::ClientGone { client_id } => forget_client(conn, client_id),
        Record::Floor { client_id, floor } => put_floor(conn, client_id, floor),
        Record::FloorGone { client_id, channel } => run(
            conn,
            "DELETE FROM floor WHERE client_id = ?1 AND channel = ?2",
            &[client_id, &channel.as_str()],
        ),
        Record::Render(rendered) => renders::put(conn, rendered),
        Record::Trim { through } => trim(conn, *through),
        Record::Sweep { disposed_before, clients_before, clients_max } => {
            sweep::channels(conn, disposed_before.0)?;
            sweep::clients(conn, clients_before.0, *clients_max)
        }
    }
}

/// Without data it is removed, but only that of the same turn: a late removal must not take the checkpoint of the turn
/// that came after.
fn put_checkpoint(
    conn: &Connection,
    chat: ChannelId,
    turn_id: &str,
    data: Option<&[u8]>,
) -> Result<()> {
    match data {
        Some(data) => run(
            conn,
            "INSERT OR REPLACE INTO checkpoint (chat, turn_id, data) VALUES (?1, ?2, ?3)",
            &[&int(chat.0), &turn_id, &data],
        ),
        None => run(
            conn,
            "DELETE FROM checkpoint WHERE chat = ?1 AND turn_id = ?2",
            &[&int(chat.0), &turn_id],
        ),
    }
}

/// Runs a statement that answers nothing, compiled at most once in the connection's life.
pub(super) fn run(conn: &Connection, sql: &str, values: &[&dyn ToSql]) -> Result<()> {
    conn.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn put_channel(conn: &Connection, channel: &ChannelRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO channel (id, uri, kind, parent, head_seq, duty, private, head)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (id) DO UPDATE SET uri = ?2, kind = ?3, parent = ?4, head_seq = ?5, duty = ?6,
             private = ?7, head = ?8",
    )?
    .execute(params![
        int(channel.id.0),
        channel.uri.as_str(),
        channel.kind.to_code(),
        channel.parent.map(|parent| int(parent.0)),
        int(channel.head_seq.0),
        channel.boot_work.to_bits(),
        &channel.private[..],
        channel.head.encode(),
    ])?;
    Ok(())
}

/// A fork sees what its source sees: the source's own ranges as far as they are visible, then the source's own rows.
/// The last range always ends at `through_n`, which is where the fork's own numbers go on.
fn fork(
    conn: &Connection,
    chat: ChannelId,
    source: ChannelId,
    through_n: u64,
    as_of: Seq,
) -> Result<()> {
    let (chat, source, through_n) = (int(chat.0), int(source.0), int(through_n));
    run(
        conn,
        "INSERT INTO turn_range (chat, pos, source, first_n, last_n, visible_n, as_of)
         SELECT ?1, pos, source, first_n, min(visible_n, ?3), min(visible_n, ?3), as_of
         FROM turn_range WHERE chat = ?2 AND first_n <= min(visible_n, ?3)",
        &[&chat, &source, &through_n],
    )?;
    run(
        conn,
        "INSERT INTO turn_range (chat, pos, source, first_n, last_n, visible_n, as_of)
         SELECT ?1, coalesce(max(pos), -1) + 1, ?2, coalesce(max(last_n), -1) + 1, ?3, ?3, ?4
         FROM turn_range WHERE chat = ?1 HAVING coalesce(max(last_n), -1) < ?3",
        &[&chat, &source, &through_n, &int(as_of.0)],
    )
}

fn put_turn(conn: &Connection, chat: ChannelId, n: u64, turn: &Turn) -> Result<()> {
    run(conn, "INSERT INTO turn_body (bytes) VALUES (?1)", &[&&turn.json[..]])?;
    conn.prepare_cached(
        "INSERT INTO turn (channel, n, id, outcome, size, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        int(chat.0),
        int(n),
        turn.id,
        turn.outcome.to_code(),
        int(turn.json.len() as u64),
        conn.last_insert_rowid(),
    ])?;
    Ok(())
}

fn hide_turns(conn: &Connection, chat: ChannelId, from_n: u64, at: Seq) -> Result<()> {
    let (chat, from_n) = (int(chat.0), int(from_n));
    run(conn, HIDE_TURNS, &[&chat, &from_n, &int(at.0)])?;
    run(
        conn,
        "UPDATE turn_range SET visible_n = ?2 - 1 WHERE chat = ?1 AND visible_n >= ?2",
        &[&chat, &from_n],
    )
}

fn dispose(conn: &Connection, channel: ChannelId, at: i64) -> Result<()> {
    let itself = "UPDATE channel SET disposed_at = ?2 WHERE id = ?1 AND disposed_at IS NULL";
    run(conn, itself, &[&int(channel.0), &at])?;
    run(conn, DISPOSE_CHATS, &[&int(channel.0), &at])
}

fn put_summary(conn: &Connection, summary: &SummaryRecord) -> Result<()> {
    let modified = if summary.is_listed() { summary.modified.0 } else { list::UNLISTED };
    conn.prepare_cached(
        "INSERT OR REPLACE INTO summary (session, uri, modified, created, empty, creator, json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        int(summary.session.0),
        summary.uri.as_str(),
        modified,
        summary.created.0,
        summary.empty,
        summary.creator,
        &summary.json[..],
    ])?;
    Ok(())
}

fn put_client(conn: &Connection, client: &ClientRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO client
             (client_id, version, capabilities, locale, last_seen_ms, transform)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        client.client_id,
        client.version,
        client.capabilities.as_ref().map(ToString::to_string),
        client.locale,
        client.last_seen_ms,
        client.transform.as_ref().map(|ids| serde_json::json!(ids).to_string()),
    ])?;
    Ok(())
}

pub(super) fn forget_client(conn: &Connection, client_id: &str) -> Result<()> {
    run(conn, "DELETE FROM client WHERE client_id = ?1", &[&client_id])?;
    run(conn, "DELETE FROM floor WHERE client_id = ?1", &[&client_id])
}

fn put_floor(conn: &Connection, client_id: &str, floor: &FloorRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO floor
             (client_id, channel, floor, replaced, oldest_turn, view_turns, max_latency_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        client_id,
        floor.channel.as_str(),
        int(floor.floor.0),
        floor.replaced,
        floor.oldest_turn,
        floor.view_turns,
        floor.max_latency_ms,
    ])?;
    Ok(())
}

fn trim(conn: &Connection, through: Seq) -> Result<()> {
    actions::trim(conn, through)?;
    run(conn, "UPDATE meta SET value = max(value, ?1) WHERE key = 'log_floor'", &[&int(through.0)])
}
