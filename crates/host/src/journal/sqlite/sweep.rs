//! Housekeeping: rows nobody can ask for any more.
//!
//! Promises: one sweep is bounded work, the next goes on where it stopped; a turn stays as long as a fork refers to
//! it, whatever became of its own chat.
//! Must not know: how long anything is retained.

use rusqlite::{Connection, Result, params};

use super::write::{forget_client, run};
use super::{actions, calls, changes, messages, outputs, references};

/// Channels looked at in one sweep: a sweep shares the writer with everybody's batches.
const SWEEP_CHANNELS_MAX: i64 = 100;
/// Actions and turns deleted in one sweep, for the same reason: one chat may hold a hundred thousand.
const SWEEP_ROWS_MAX: i64 = 2_000;
/// Clients forgotten in one sweep.
const SWEEP_CLIENTS_MAX: i64 = 1_000;

/// `disposed_at` of a channel that is gone but for turns that forks refer to: no sweep finds it until it is let go.
const HELD: i64 = i64::MAX;
/// `disposed_at` of such a channel once a fork is gone: first in line for the next sweep.
const LET_GO: i64 = i64::MIN;

pub(super) const DUE: &str =
    "SELECT id FROM channel WHERE disposed_at < ?1 ORDER BY disposed_at LIMIT ?2";

pub(super) const UNUSED_TURNS: &str = "SELECT n, body, id FROM turn
     WHERE channel = ?1 AND NOT EXISTS (SELECT 1 FROM turn_range
         WHERE source = ?1 AND turn.n BETWEEN first_n AND last_n)
     ORDER BY n LIMIT ?2";

pub(super) const STALE_CLIENTS: &str =
    "SELECT client_id FROM client WHERE last_seen_ms < ?1 ORDER BY last_seen_ms LIMIT ?2";

pub(super) const OLDEST_CLIENTS: &str =
    "SELECT client_id FROM client ORDER BY last_seen_ms, client_id LIMIT ?1";

pub(super) fn channels(conn: &Connection, disposed_before: i64) -> Result<()> {
    let found: Vec<i64> = conn
        .prepare_cached(DUE)?
        .query_map([disposed_before, SWEEP_CHANNELS_MAX], |row| row.get(0))?
        .collect::<Result<_>>()?;
    let mut rows_left = SWEEP_ROWS_MAX;
    for channel in found {
        rows_left -= actions::forget(conn, channel, rows_left)?;
        rows_left -= delete_turns(conn, channel, rows_left)?;
        if rows_left <= 0 {
            // What is left of this channel comes first in the next sweep.
            break;
        }
        rows_left -= references::forget_channel(conn, channel, rows_left)?;
        if rows_left <= 0 {
            break;
        }
        let_go_of_sources(conn, channel)?;
        bury(conn, channel)?;
    }
    Ok(())
}

fn delete_turns(conn: &Connection, channel: i64, rows_max: i64) -> Result<i64> {
    let unused: Vec<(i64, i64, String)> = conn
        .prepare_cached(UNUSED_TURNS)?
        .query_map([channel, rows_max], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_>>()?;
    for (n, body, id) in &unused {
        run(conn, "DELETE FROM turn_body WHERE id = ?1", &[body])?;
        run(conn, "DELETE FROM turn WHERE channel = ?1 AND n = ?2", &[&channel, n])?;
        references::forget_turn(conn, channel, *n)?;
        messages::forget_turn(conn, channel, id)?;
        outputs::forget_turn(conn, channel, id)?;
        changes::forget_turn(conn, channel, id)?;
    }
    Ok(i64::try_from(unused.len()).unwrap_or(i64::MAX))
}

fn let_go_of_sources(conn: &Connection, fork: i64) -> Result<()> {
    conn.prepare_cached(
        "UPDATE channel SET disposed_at = ?2 WHERE disposed_at = ?3
             AND id IN (SELECT source FROM turn_range WHERE chat = ?1)",
    )?
    .execute([fork, LET_GO, HELD])?;
    run(conn, "DELETE FROM turn_range WHERE chat = ?1", &[&fork])
}

fn bury(conn: &Connection, channel: i64) -> Result<()> {
    run(conn, "DELETE FROM checkpoint WHERE chat = ?1", &[&channel])?;
    run(conn, "DELETE FROM render WHERE chat = ?1", &[&channel])?;
    messages::forget_chat(conn, channel)?;
    outputs::forget_chat(conn, channel)?;
    changes::forget_channel(conn, channel)?;
    calls::forget_chat(conn, channel)?;
    let held: bool = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM turn WHERE channel = ?1)")?
        .query_row([channel], |row| row.get(0))?;
    if held {
        conn.prepare_cached(
            "UPDATE channel SET disposed_at = ?2, private = x'', head = x'' WHERE id = ?1",
        )?
        .execute(params![channel, HELD])?;
        return Ok(());
    }
    run(conn, "DELETE FROM channel WHERE id = ?1", &[&channel])
}

pub(super) fn clients(conn: &Connection, seen_before: i64, clients_max: u32) -> Result<()> {
    forget(conn, STALE_CLIENTS, [seen_before, SWEEP_CLIENTS_MAX])?;
    let stored: i64 =
        conn.prepare_cached("SELECT count(*) FROM client")?.query_row([], |row| row.get(0))?;
    let over = (stored - i64::from(clients_max)).clamp(0, SWEEP_CLIENTS_MAX);
    forget(conn, OLDEST_CLIENTS, [over])
}

fn forget<const N: usize>(conn: &Connection, sql: &str, values: [i64; N]) -> Result<()> {
    let ids: Vec<String> = conn
        .prepare_cached(sql)?
        .query_map(rusqlite::params_from_iter(values), |row| row.get(0))?
        .collect::<Result<_>>()?;
    ids.iter().try_for_each(|id| forget_client(conn, id))
}
