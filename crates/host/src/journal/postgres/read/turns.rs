//! The visible turns of a chat: its own and those it sees of other chats as a fork.
//!
//! Promises: bodies are fetched only for turns that are on the page.
//! Must not know: how turns become hidden.

use kernel::{ChannelId, StoredTurn, TurnPage, TurnPosition};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use wire::state::Outcome;

use super::{PgReadError, PgReadResult, SpaceReader, bytes_at, int, number};
use crate::journal::page::PageBuilder;

/// More rows than this are not looked at for one page, whatever it asks for, before the next are asked for.
const ROWS_STEP: i64 = 256;

const OWN_TURNS: &str = "SELECT n, id, outcome, size FROM greenroom.turn
     WHERE space = $1 AND channel = $2 AND n < $3 AND hidden_at IS NULL ORDER BY n DESC LIMIT $4";

const RANGE_TURNS: &str = "SELECT n, id, outcome, size FROM greenroom.turn
     WHERE space = $1 AND channel = $2 AND n < $3 AND n >= $5 AND (hidden_at IS NULL OR hidden_at > $6)
     ORDER BY n DESC LIMIT $4";

const CONTEXT_TURNS: &str = "SELECT n, id, outcome, size FROM greenroom.turn
     WHERE space = $1 AND channel = $2 AND n < $3 ORDER BY n DESC LIMIT $4";

const BODIES: &str =
    "SELECT n, body FROM greenroom.turn WHERE space = $1 AND channel = $2 AND n = ANY($3)";

/// What a fork sees of another chat.
struct PgRange {
    source: i64,
    first_n: i64,
    last_n: i64,
    visible_n: i64,
    as_of: i64,
}

/// A page that is being read, newest turn first.
struct PgPage {
    page: PageBuilder,
    found: TurnPage,
    is_full: bool,
}

impl SpaceReader<'_> {
    /// The page of visible turns right before `before_n`.
    pub(super) async fn turns_before(
        &mut self,
        chat: ChannelId,
        before_n: u64,
        page: PageBuilder,
    ) -> PgReadResult<TurnPage> {
        let before_n = int(before_n);
        let mut page = PgPage::new(page);
        self.take(&mut page, OWN_TURNS, int(chat.0), before_n, None).await?;
        for range in self.ranges(chat).await?.iter().rev() {
            let end = before_n.min(range.visible_n.saturating_add(1));
            self.take(&mut page, RANGE_TURNS, range.source, end, Some(range)).await?;
        }
        Ok(page.finish())
    }

    /// The newest turns of a chat through a number, visible there or not.
    pub(super) async fn context(
        &mut self,
        chat: ChannelId,
        through_n: u64,
        page: PageBuilder,
    ) -> PgReadResult<TurnPage> {
        let end = int(through_n).saturating_add(1);
        let mut page = PgPage::new(page);
        self.take(&mut page, CONTEXT_TURNS, int(chat.0), end, None).await?;
        for range in self.ranges(chat).await?.iter().rev() {
            let end = end.min(range.last_n.saturating_add(1));
            self.take(&mut page, RANGE_TURNS, range.source, end, Some(range)).await?;
        }
        Ok(page.finish())
    }

    /// Takes turns of one chat below `end`, newest first, until the page is full.
    async fn take(
        &mut self,
        page: &mut PgPage,
        sql: &'static str,
        channel: i64,
        mut end: i64,
        range: Option<&PgRange>,
    ) -> PgReadResult<()> {
        while !page.is_full {
            let mut values: Vec<&(dyn ToSql + Sync)> =
                vec![&self.space, &channel, &end, &ROWS_STEP];
            if let Some(range) = range {
                values.extend([&range.first_n as &(dyn ToSql + Sync), &range.as_of]);
            }
            let rows = self.conn.query(sql, &values).await?;
            let mut taken = Vec::new();
            for row in &rows {
                if !page.page.takes(number(row.try_get(3)?)?) {
                    page.found.older = true;
                    page.is_full = true;
                    break;
                }
                taken.push(row);
            }
            self.fetch_bodies(page, channel, &taken).await?;
            if rows.len() < usize::try_from(ROWS_STEP).unwrap_or(usize::MAX) {
                break; // there are no more
            }
            end = rows.last().map_or(Ok(end), |row| row.try_get(0))?;
        }
        Ok(())
    }

    async fn fetch_bodies(
        &mut self,
        page: &mut PgPage,
        channel: i64,
        taken: &[&Row],
    ) -> PgReadResult<()> {
        let numbers: Vec<i64> = taken.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let mut bodies = std::collections::BTreeMap::new();
        for row in self.conn.query(BODIES, &[&self.space, &channel, &numbers]).await? {
            bodies.insert(row.try_get::<_, i64>(0)?, bytes_at(&row, 1)?);
        }
        for row in taken {
            let (n, code): (i64, i16) = (row.try_get(0)?, row.try_get(2)?);
            let outcome = u8::try_from(code).ok().and_then(Outcome::from_code);
            let missing = || PgReadError(format!("turn {n} has no body"));
            page.found.turns.push(StoredTurn {
                n: number(n)?,
                id: row.try_get(1)?,
                outcome: outcome
                    .ok_or_else(|| PgReadError(format!("{code} is no outcome of a turn")))?,
                json: bodies.remove(&n).ok_or_else(missing)?,
            });
        }
        Ok(())
    }

    /// The number the next turn gets: above every one that was ever used, hidden ones too.
    pub(super) async fn next_n(&mut self, chat: ChannelId) -> PgReadResult<u64> {
        let sql = "SELECT greatest(
             coalesce((SELECT max(n) FROM greenroom.turn WHERE space = $1 AND channel = $2), -1),
             coalesce((SELECT max(last_n) FROM greenroom.turn_range WHERE space = $1 AND chat = $2), -1))";
        let rows = self.conn.query(sql, &[&self.space, &int(chat.0)]).await?;
        let highest: i64 = rows.first().map_or(Ok(-1), |row| row.try_get(0))?;
        number(highest + 1)
    }

    /// Where a turn id stands. A resumed turn leaves a hidden row of the same id behind: the visible one counts.
    pub(super) async fn find_turn(
        &mut self,
        chat: ChannelId,
        turn_id: &str,
    ) -> PgReadResult<Option<TurnPosition>> {
        let own = "SELECT n, hidden_at IS NULL FROM greenroom.turn
             WHERE space = $1 AND channel = $2 AND id = $3";
        let mut all = Vec::new();
        for row in self.conn.query(own, &[&self.space, &int(chat.0), &turn_id]).await? {
            all.push(TurnPosition { n: number(row.try_get(0)?)?, visible: row.try_get(1)? });
        }
        let in_range = "SELECT n FROM greenroom.turn WHERE space = $1 AND channel = $2 AND id = $3
             AND n BETWEEN $4 AND $5 AND (hidden_at IS NULL OR hidden_at > $6)";
        for range in self.ranges(chat).await? {
            let values: [&(dyn ToSql + Sync); 6] =
                [&self.space, &range.source, &turn_id, &range.first_n, &range.last_n, &range.as_of];
            for row in self.conn.query(in_range, &values).await? {
                let n: i64 = row.try_get(0)?;
                all.push(TurnPosition { n: number(n)?, visible: n <= range.visible_n });
            }
        }
        Ok(all.into_iter().max_by_key(|found| (found.visible, found.n)))
    }

    async fn ranges(&mut self, chat: ChannelId) -> PgReadResult<Vec<PgRange>> {
        let sql = "SELECT source, first_n, last_n, visible_n, as_of FROM greenroom.turn_range
             WHERE space = $1 AND chat = $2 ORDER BY pos";
        let rows = self.conn.query(sql, &[&self.space, &int(chat.0)]).await?;
        let ranges = rows.iter().map(|row| {
            Ok(PgRange {
                source: row.try_get(0)?,
                first_n: row.try_get(1)?,
                last_n: row.try_get(2)?,
                visible_n: row.try_get(3)?,
                as_of: row.try_get(4)?,
            })
        });
        ranges.collect()
    }
}

impl PgPage {
    fn new(page: PageBuilder) -> Self {
        Self { page, found: TurnPage::default(), is_full: false }
    }

    fn finish(mut self) -> TurnPage {
        self.found.turns.reverse();
        self.found
    }
}
