//! The session list, the sessions that may be swept, and what reconnect needs of a client.
//!
//! Must not know: what a summary means.

use kernel::{ChannelId, ClientRecord, EmptySessions, FloorRecord, Seq, SummaryRecord};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use wire::Timestamp;

use super::{PgReadError, PgReadResult, SpaceReader, bytes_at, int, number, uri_at};
use crate::journal::postgres::records::UNLISTED;

impl SpaceReader<'_> {
    pub(super) async fn sessions(
        &mut self,
        after: Option<(Timestamp, ChannelId)>,
        limit: u32,
    ) -> PgReadResult<Vec<SummaryRecord>> {
        let first =
            "SELECT session, uri, modified, created, empty, creator, json FROM greenroom.summary
             WHERE space = $1 AND modified > $2 ORDER BY modified DESC, session DESC LIMIT $3";
        let next =
            "SELECT session, uri, modified, created, empty, creator, json FROM greenroom.summary
             WHERE space = $1 AND modified > $2 AND (modified, session) < ($4, $5)
             ORDER BY modified DESC, session DESC LIMIT $3";
        let limit = i64::from(limit);
        let rows = match after {
            None => self.conn.query(first, &[&self.space, &UNLISTED, &limit]).await?,
            Some((modified, session)) => {
                let session = int(session.0);
                let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&self.space, &UNLISTED, &limit, &modified.0, &session];
                self.conn.query(next, &values).await?
            }
        };
        rows.iter().map(summary_at).collect()
    }

    pub(super) async fn empty_sessions(
        &mut self,
        created_before: Timestamp,
        limit: u32,
    ) -> PgReadResult<EmptySessions> {
        let due = "SELECT uri FROM greenroom.summary LEFT JOIN greenroom.client
                 ON client.space = summary.space AND client.client_id = summary.creator
             WHERE summary.space = $1 AND summary.empty AND summary.created < $2
                 AND (client.last_seen_ms IS NULL OR client.last_seen_ms < $2)
             ORDER BY summary.created, summary.session LIMIT $3";
        let limit = i64::from(limit);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.space, &created_before.0, &limit];
        let rows = self.conn.query(due, &values).await?;
        let due = rows.iter().map(|row| uri_at(row, 0)).collect::<PgReadResult<_>>()?;
        let next = "SELECT min(greatest(summary.created, client.last_seen_ms)) FROM greenroom.summary
             LEFT JOIN greenroom.client ON client.space = summary.space AND client.client_id = summary.creator
             WHERE summary.space = $1 AND summary.empty AND (summary.created >= $2 OR client.last_seen_ms >= $2)";
        let rows = self.conn.query(next, &[&self.space, &created_before.0]).await?;
        let next: Option<i64> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
        let next_since = next.map(Timestamp);
        let log_from = self.log_from().await?;
        Ok(EmptySessions { due, next_since, log_from })
    }

    pub(super) async fn client(
        &mut self,
        client_id: &str,
    ) -> PgReadResult<Option<(ClientRecord, Vec<FloorRecord>)>> {
        let sql =
            "SELECT version, capabilities, locale, last_seen_ms, transform FROM greenroom.client
             WHERE space = $1 AND client_id = $2";
        let rows = self.conn.query(sql, &[&self.space, &client_id]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let record = ClientRecord {
            client_id: client_id.to_owned(),
            version: row.try_get(0)?,
            capabilities: parsed(row.try_get(1)?)?,
            locale: row.try_get(2)?,
            last_seen_ms: row.try_get(3)?,
            transform: parsed(row.try_get(4)?)?,
        };
        let sql = "SELECT channel, floor, replaced, oldest_turn, view_turns, max_latency_ms FROM greenroom.floor
             WHERE space = $1 AND client_id = $2 ORDER BY channel COLLATE \"C\"";
        let rows = self.conn.query(sql, &[&self.space, &client_id]).await?;
        let floors = rows.iter().map(floor_at);
        Ok(Some((record, floors.collect::<PgReadResult<_>>()?)))
    }
}

fn parsed<T: DeserializeOwned>(text: Option<String>) -> PgReadResult<Option<T>> {
    let parse = |text: String| {
        serde_json::from_str(&text)
            .map_err(|error| PgReadError(format!("what is stored of a client: {error}")))
    };
    text.map(parse).transpose()
}

fn summary_at(row: &Row) -> PgReadResult<SummaryRecord> {
    Ok(SummaryRecord {
        session: ChannelId(number(row.try_get(0)?)?),
        uri: uri_at(row, 1)?,
        modified: Timestamp(row.try_get(2)?),
        created: Timestamp(row.try_get(3)?),
        empty: row.try_get(4)?,
        creator: row.try_get(5)?,
        json: bytes_at(row, 6)?,
    })
}

fn floor_at(row: &Row) -> PgReadResult<FloorRecord> {
    let small = |column: usize| -> PgReadResult<Option<u32>> {
        let stored: Option<i64> = row.try_get(column)?;
        Ok(stored.map(|stored| u32::try_from(stored).unwrap_or(u32::MAX)))
    };
    Ok(FloorRecord {
        channel: uri_at(row, 0)?,
        floor: Seq(number(row.try_get(1)?)?),
        replaced: row.try_get(2)?,
        oldest_turn: row.try_get(3)?,
        view_turns: small(4)?,
        max_latency_ms: small(5)?,
    })
}
