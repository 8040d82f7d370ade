//! The visible turns of a chat: its own and those it sees of other chats as a fork.
//!
//! Promises: reading newest first stops at the page's end, so the tail of a long chat costs what a short chat costs.
//! Must not know: how turns become hidden.

use kernel::{ChannelId, StoredTurn, TurnPage, TurnPosition};
use rusqlite::{CachedStatement, Connection, Row, ToSql};
use wire::state::Outcome;

use super::{ReadError, ReadResult, bytes_at, int, number};
use crate::journal::page::PageBuilder;

/// The index that holds no hidden rows: a chat that was cut short does not pay for what was cut.
pub(in crate::journal::sqlite) const OWN_TURNS: &str =
    "SELECT n, id, outcome, size, body FROM turn INDEXED BY turn_visible
     WHERE channel = ?1 AND n < ?2 AND hidden_at IS NULL ORDER BY n DESC";

pub(in crate::journal::sqlite) const RANGE_TURNS: &str =
    "SELECT n, id, outcome, size, body FROM turn
     WHERE channel = ?1 AND n >= ?2 AND n < ?3 AND (hidden_at IS NULL OR hidden_at > ?4)
     ORDER BY n DESC";

pub(in crate::journal::sqlite) const FIND_OWN: &str =
    "SELECT n, hidden_at IS NULL FROM turn WHERE channel = ?1 AND id = ?2";

pub(in crate::journal::sqlite) const FIND_IN_RANGE: &str =
    "SELECT n FROM turn WHERE channel = ?1 AND id = ?2 AND n BETWEEN ?3 AND ?4
         AND (hidden_at IS NULL OR hidden_at > ?5)";

pub(in crate::journal::sqlite) const NEXT_N: &str =
    "SELECT max(coalesce((SELECT max(n) FROM turn WHERE channel = ?1), -1),
                coalesce((SELECT max(last_n) FROM turn_range WHERE chat = ?1), -1))";

/// What a fork sees of another chat.
struct VisibleRange {
    source: i64,
    first_n: i64,
    last_n: i64,
    visible_n: i64,
    as_of: i64,
}

/// The page of visible turns right before `before_n`.
pub(super) fn before(
    conn: &Connection,
    chat: ChannelId,
    before_n: u64,
    page: PageBuilder,
) -> ReadResult<TurnPage> {
    let before_n = int(before_n);
    let mut reading = Reading { conn, page, found: TurnPage::default() };
    let own = conn.prepare_cached(OWN_TURNS)?;
    if reading.take(own, &[&int(chat.0), &before_n])? == PageSpace::Left {
        for range in ranges(conn, chat)?.iter().rev() {
            let end = before_n.min(range.visible_n.saturating_add(1));
            let rows = conn.prepare_cached(RANGE_TURNS)?;
            let values: [&dyn ToSql; 4] = [&range.source, &range.first_n, &end, &range.as_of];
            if reading.take(rows, &values)? == PageSpace::None {
                break;
            }
        }
    }
    reading.found.turns.reverse();
    Ok(reading.found)
}

const CONTEXT_TURNS: &str = "SELECT n, id, outcome, size, body FROM turn
     WHERE channel = ?1 AND n <= ?2 ORDER BY n DESC";

/// The newest turns of a chat through a number, visible there or not.
pub(super) fn context(
    conn: &Connection,
    chat: ChannelId,
    through_n: u64,
    page: PageBuilder,
) -> ReadResult<TurnPage> {
    let mut reading = Reading { conn, page, found: TurnPage::default() };
    let own = conn.prepare_cached(CONTEXT_TURNS)?;
    if reading.take(own, &[&int(chat.0), &int(through_n)])? == PageSpace::None {
        reading.found.turns.reverse();
        return Ok(reading.found);
    }
    for range in ranges(conn, chat)?.iter().rev() {
        let end = range.last_n.min(int(through_n)).saturating_add(1);
        let rows = conn.prepare_cached(RANGE_TURNS)?;
        let values: [&dyn ToSql; 4] = [&range.source, &range.first_n, &end, &range.as_of];
        if reading.take(rows, &values)? == PageSpace::None {
            break;
        }
    }
    reading.found.turns.reverse();
    Ok(reading.found)
}

/// The number the next turn gets: above every one that was ever used, hidden ones too.
pub(super) fn next_n(conn: &Connection, chat: ChannelId) -> ReadResult<u64> {
    let highest: i64 = conn.prepare_cached(NEXT_N)?.query_row([int(chat.0)], |row| row.get(0))?;
    number(highest + 1)
}

/// Where a turn id stands. A resumed turn leaves a hidden row of the same id behind: the visible one counts.
pub(super) fn find(
    conn: &Connection,
    chat: ChannelId,
    turn_id: &str,
) -> ReadResult<Option<TurnPosition>> {
    let mut statement = conn.prepare_cached(FIND_OWN)?;
    let mut best = None;
    let mut rows = statement.query((int(chat.0), turn_id))?;
    while let Some(row) = rows.next()? {
        best = better(best, TurnPosition { n: number(row.get(0)?)?, visible: row.get(1)? });
    }
    let mut statement = conn.prepare_cached(FIND_IN_RANGE)?;
    for range in ranges(conn, chat)? {
        let values = (range.source, turn_id, range.first_n, range.last_n, range.as_of);
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            let n: i64 = row.get(0)?;
            best = better(best, TurnPosition { n: number(n)?, visible: n <= range.visible_n });
        }
    }
    Ok(best)
}

fn better(one: Option<TurnPosition>, other: TurnPosition) -> Option<TurnPosition> {
    one.into_iter().chain([other]).max_by_key(|found| (found.visible, found.n))
}

fn ranges(conn: &Connection, chat: ChannelId) -> ReadResult<Vec<VisibleRange>> {
    let mut statement = conn.prepare_cached(
        "SELECT source, first_n, last_n, visible_n, as_of FROM turn_range WHERE chat = ?1 ORDER BY pos",
    )?;
    let ranges = statement.query_map([int(chat.0)], |row| {
        Ok(VisibleRange {
            source: row.get(0)?,
            first_n: row.get(1)?,
            last_n: row.get(2)?,
            visible_n: row.get(3)?,
            as_of: row.get(4)?,
        })
    })?;
    Ok(ranges.collect::<rusqlite::Result<_>>()?)
}

#[derive(PartialEq, Eq)]
enum PageSpace {
    Left,
    None,
}

/// A page that is being read, newest turn first.
struct Reading<'c> {
    conn: &'c Connection,
    page: PageBuilder,
    found: TurnPage,
}

impl Reading<'_> {
    fn take(
        &mut self,
        mut rows: CachedStatement<'_>,
        values: &[&dyn ToSql],
    ) -> ReadResult<PageSpace> {
        let mut rows = rows.query(values)?;
        while let Some(row) = rows.next()? {
            if !self.page.takes(number(row.get(3)?)?) {
                self.found.older = true;
                return Ok(PageSpace::None);
            }
            self.found.turns.push(self.turn_at(row)?);
        }
        Ok(PageSpace::Left)
    }

    /// The body is fetched only for a turn that is on the page.
    fn turn_at(&self, row: &Row<'_>) -> ReadResult<StoredTurn> {
        let code = row.get(2)?;
        let mut body = self.conn.prepare_cached("SELECT bytes FROM turn_body WHERE id = ?1")?;
        Ok(StoredTurn {
            n: number(row.get(0)?)?,
            id: row.get(1)?,
            outcome: Outcome::from_code(code)
                .ok_or_else(|| ReadError(format!("{code} is not an outcome of a turn")))?,
            json: body.query_row([row.get::<_, i64>(4)?], |row| bytes_at(row, 0))?,
        })
    }
}
