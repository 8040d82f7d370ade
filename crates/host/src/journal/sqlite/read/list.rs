//! The session list, the sessions that may be swept, and what reconnect needs of a client.
//!
//! Must not know: what a summary means.

use kernel::{ChannelId, ClientRecord, EmptySessions, FloorRecord, Seq, SummaryRecord};
use rusqlite::{Connection, Row};
use wire::Timestamp;

use super::{ReadError, ReadResult, bytes_at, int, number, uri_at};

/// `modified` of a session that is in no list: it is at the end of the index, where no page reaches.
pub(in crate::journal::sqlite) const UNLISTED: i64 = i64::MIN;

pub(in crate::journal::sqlite) const FIRST_PAGE: &str =
    "SELECT session, uri, modified, created, empty, creator, json FROM summary
     WHERE modified > ?2 ORDER BY modified DESC, session DESC LIMIT ?1";

pub(in crate::journal::sqlite) const NEXT_PAGE: &str =
    "SELECT session, uri, modified, created, empty, creator, json FROM summary
     WHERE (modified, session) < (?3, ?4) AND modified > ?2 ORDER BY modified DESC, session DESC LIMIT ?1";

pub(in crate::journal::sqlite) const EMPTY: &str =
    "SELECT summary.uri FROM summary LEFT JOIN client ON client.client_id = summary.creator
     WHERE summary.empty = 1 AND summary.created < ?1
         AND (client.last_seen_ms IS NULL OR client.last_seen_ms < ?1)
     ORDER BY summary.created, summary.session LIMIT ?2";

pub(in crate::journal::sqlite) const NEXT_EMPTY: &str =
    "SELECT min(max(summary.created, coalesce(client.last_seen_ms, summary.created)))
     FROM summary LEFT JOIN client ON client.client_id = summary.creator
     WHERE summary.empty = 1 AND (summary.created >= ?1 OR client.last_seen_ms >= ?1)";

pub(super) fn sessions(
    conn: &Connection,
    after: Option<(Timestamp, ChannelId)>,
    limit: u32,
) -> ReadResult<Vec<SummaryRecord>> {
    let mut statement;
    let mut rows = match after {
        None => {
            statement = conn.prepare_cached(FIRST_PAGE)?;
            statement.query([i64::from(limit), UNLISTED])?
        }
        Some((modified, session)) => {
            statement = conn.prepare_cached(NEXT_PAGE)?;
            statement.query([i64::from(limit), UNLISTED, modified.0, int(session.0)])?
        }
    };
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        page.push(SummaryRecord {
            session: ChannelId(number(row.get(0)?)?),
            uri: uri_at(row, 1)?,
            modified: Timestamp(row.get(2)?),
            created: Timestamp(row.get(3)?),
            empty: row.get(4)?,
            creator: row.get(5)?,
            json: bytes_at(row, 6)?,
        });
    }
    Ok(page)
}

pub(super) fn empty_sessions(
    conn: &Connection,
    created_before: Timestamp,
    limit: u32,
) -> ReadResult<EmptySessions> {
    let mut statement = conn.prepare_cached(EMPTY)?;
    let mut rows = statement.query([created_before.0, i64::from(limit)])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        due.push(uri_at(row, 0)?);
    }
    let mut statement = conn.prepare_cached(NEXT_EMPTY)?;
    let next_since: Option<i64> = statement.query_row([created_before.0], |row| row.get(0))?;
    Ok(EmptySessions {
        due,
        next_since: next_since.map(Timestamp),
        log_from: None, // its length alone bounds it
    })
}

pub(super) fn client(
    conn: &Connection,
    client_id: &str,
) -> ReadResult<Option<(ClientRecord, Vec<FloorRecord>)>> {
    let mut statement = conn.prepare_cached(
        "SELECT version, capabilities, locale, last_seen_ms, transform FROM client
         WHERE client_id = ?1",
    )?;
    let mut rows = statement.query([client_id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let capabilities = match row.get::<_, Option<String>>(1)? {
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            ReadError(format!("the capabilities of client `{client_id}`: {error}"))
        })?),
        None => None,
    };
    let transform = match row.get::<_, Option<String>>(4)? {
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            ReadError(format!("what client `{client_id}` rewrites by default: {error}"))
        })?),
        None => None,
    };
    let record = ClientRecord {
        client_id: client_id.to_owned(),
        version: row.get(0)?,
        capabilities,
        locale: row.get(2)?,
        last_seen_ms: row.get(3)?,
        transform,
    };
    Ok(Some((record, floors(conn, client_id)?)))
}

fn floors(conn: &Connection, client_id: &str) -> ReadResult<Vec<FloorRecord>> {
    let mut statement = conn.prepare_cached(
        "SELECT channel, floor, replaced, oldest_turn, view_turns, max_latency_ms FROM floor
         WHERE client_id = ?1 ORDER BY channel",
    )?;
    let mut rows = statement.query([client_id])?;
    let mut floors = Vec::new();
    while let Some(row) = rows.next()? {
        floors.push(floor_at(row)?);
    }
    Ok(floors)
}

fn floor_at(row: &Row<'_>) -> ReadResult<FloorRecord> {
    Ok(FloorRecord {
        channel: uri_at(row, 0)?,
        floor: Seq(number(row.get(1)?)?),
        replaced: row.get(2)?,
        oldest_turn: row.get(3)?,
        view_turns: row.get(4)?,
        max_latency_ms: row.get(5)?,
    })
}
